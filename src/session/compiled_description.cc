#include "session/compiled_description.h"

#include "base/fail.h"
#include "onnx/wire.h"

namespace tenon {
namespace {

// Both directions walk one list of fields: visit(fields, record) names each member once, with its number.

class Writer {
 public:
  template <typename Record>
  using Of = const Record&;

  void operator()(uint32_t field, const std::string& text) { out_.bytes(field, text); }
  void operator()(uint32_t field, const std::filesystem::path& path) { out_.bytes(field, path.string()); }
  void operator()(uint32_t field, uint64_t number) { out_.varint(field, number); }
  void operator()(uint32_t field, int64_t number) { out_.int64(field, number); }
  void operator()(uint32_t field, int number) { out_.int64(field, number); }
  void operator()(uint32_t field, bool flag) { out_.varint(field, flag ? 1 : 0); }
  void operator()(uint32_t field, ElementType type) { out_.int64(field, static_cast<int64_t>(type)); }
  template <typename Item>
  void operator()(uint32_t field, const std::vector<Item>& items) {
    for (const Item& item : items) (*this)(field, item);
  }
  template <typename Record>
  void operator()(uint32_t field, const Record& record) {
    Writer inner;
    visit(inner, record);
    out_.message(field, std::move(inner.out_));
  }
  std::string text() const { return out_.to_string(); }

 private:
  onnx::WireWriter out_;
};

class Reader {
 public:
  template <typename Record>
  using Of = Record&;

  template <typename Record>
  static void read(onnx::WireReader message, Record& record) {
    Reader reader(message);
    while (message.next()) {
      reader.is_taken_ = false;
      visit(reader, record);
      if (!reader.is_taken_) message.skip();
    }
  }
  template <typename Member>
  void operator()(uint32_t field, Member& member) {
    if (is_taken_ || field != message_.field()) return;
    is_taken_ = true;
    take(member);
  }

 private:
  explicit Reader(onnx::WireReader& message) : message_(message) {}
  void take(std::string& text) { text = message_.string(); }
  void take(std::filesystem::path& path) { path = message_.string(); }
  void take(uint64_t& number) { number = message_.varint(); }
  void take(int64_t& number) { number = message_.int64(); }
  void take(int& number) { number = message_.int32(); }
  void take(bool& flag) { flag = message_.varint() != 0; }
  void take(ElementType& type) {
    const int32_t number = message_.int32();
    if (number != 0 && !is_known(number)) fail(ErrorCode::invalid_model, "element type {} is unknown", number);
    type = static_cast<ElementType>(number);
  }
  template <typename Item>
  void take(std::vector<Item>& items) {
    take(items.emplace_back());
  }
  template <typename Record>
  void take(Record& record) {
    read(message_.message(), record);
  }

  onnx::WireReader& message_;
  bool is_taken_ = false;
};

template <typename Fields>
void visit(Fields& f, typename Fields::template Of<std::pair<std::string, std::string>> r) {
  f(1, r.first);
  f(2, r.second);
}
template <typename Fields>
void visit(Fields& f, typename Fields::template Of<std::pair<std::string, int64_t>> r) {
  f(1, r.first);
  f(2, r.second);
}
template <typename Fields>
void visit(Fields& f, typename Fields::template Of<ModelFile> r) {
  f(1, r.name);
  f(2, r.bytes);
  f(3, r.modified_ns);
  f(4, r.hash);
}
template <typename Fields>
void visit(Fields& f, typename Fields::template Of<CompiledKey> r) {
  f(1, r.version);
  f(2, r.processor);
  f(3, r.options);
  f(4, r.providers);
  f(5, r.model);
  f(6, r.files);
}
template <typename Fields>
void visit(Fields& f, typename Fields::template Of<ModelInfo> r) {
  f(1, r.ir_version);
  f(2, r.opsets);
  f(3, r.producer_name);
  f(4, r.producer_version);
  f(5, r.domain);
  f(6, r.graph_name);
  f(7, r.doc_string);
  f(8, r.graph_doc_string);
  f(9, r.model_version);
  f(10, r.metadata);
}
template <typename Fields>
void visit(Fields& f, typename Fields::template Of<ValueInfo> r) {
  f(1, r.name);
  f(2, r.type);
  f(3, r.element);
  f(4, r.has_shape);
  f(5, r.shape);
  f(6, r.index_limit);
}
template <typename Fields>
void visit(Fields& f, typename Fields::template Of<Rewrite::BlockedImage> r) {
  f(1, r.from);
  f(2, r.to);
  f(3, r.channels);
}
template <typename Fields>
void visit(Fields& f, typename Fields::template Of<Rewrite> r) {
  f(1, r.pass);
  f(2, r.before);
  f(3, r.after);
  f(4, r.renamed);
  f(5, r.blocked);
}
template <typename Fields>
void visit(Fields& f, typename Fields::template Of<ModelReport> r) {
  f(1, r.info);
  f(2, r.inputs);
  f(3, r.outputs);
  f(4, r.overridable);
  f(5, r.rewrites);
  f(6, r.notes);
}
template <typename Fields>
void visit(Fields& f, typename Fields::template Of<StoredPiece> r) {
  f(1, r.offset);
  f(2, r.bytes);
  f(3, r.hash);
}
template <typename Fields>
void visit(Fields& f, typename Fields::template Of<StoredEntry> r) {
  f(1, r.key);
  f(2, r.pieces);
}
template <typename Fields>
void visit(Fields& f, typename Fields::template Of<CompiledDescription> r) {
  f(1, r.key);
  f(2, r.report);
  f(3, r.unstored_bytes);
  f(4, r.tensors);
  f(5, r.packed);
}
template <typename Fields>
void visit(Fields& f, typename Fields::template Of<ir::Origin> r) {
  f(1, r.op_type);
  f(2, r.domain);
  f(3, r.name);
  f(4, r.version);
  f(5, r.position);
  f(6, r.path);
}

template <typename Record>
std::string write(const Record& record) {
  Writer writer;
  visit(writer, record);
  return writer.text();
}

template <typename Record>
Record read(std::string_view bytes) {
  Record record;
  Reader::read(onnx::WireReader(bytes), record);
  return record;
}

}  // namespace

std::string write_description(const CompiledDescription& description) { return write(description); }
CompiledDescription read_description(std::string_view bytes) { return read<CompiledDescription>(bytes); }

std::string write_origin(const ir::Origin& origin) { return write(origin); }
ir::Origin read_origin(std::string_view bytes) { return read<ir::Origin>(bytes); }

}  // namespace tenon

#include "session/compiled_file.h"

#include <algorithm>
#include <cstring>
#include <fstream>

#include "base/content_hash.h"
#include "base/fail.h"
#include "base/new_file.h"
#include "base/rounding.h"
#include "onnx/message_writer.h"
#include "onnx/model_file.h"
#include "session/compiled_description.h"
#include "session/compiled_header.h"

namespace tenon {
namespace {

namespace fs = std::filesystem;

constexpr int64_t page = contents_offset, cache_line = 64;
constexpr uint64_t large = 64 << 10;   // starts at a page
constexpr int64_t least_stored = 256;  // smaller tensors stay in the graph
constexpr std::string_view origin_name = "tenon.origin", contents_name = "contents", unstored_name = "unstored";

uint64_t hash_of(std::string_view text) { return content_hash(std::as_bytes(std::span(text))); }

[[noreturn]] void damaged(std::string_view what) {
  throw Error(ErrorCode::damaged_file, std::string(what), "compile the model again: tenon compile");
}

CompiledHeader read_header(std::span<const std::byte> file) {
  CompiledHeader header{};
  if (file.size() < sizeof(header)) damaged("it is too short");
  std::memcpy(&header, file.data(), sizeof(header));
  if (std::string_view(header.magic, sizeof(header.magic)) != compiled_magic)
    damaged("it does not start as a compiled model");
  if (header.format != compiled_format) {
    throw Error(ErrorCode::stale_file,
                fmt::format("it has format {}, this version of Tenon reads format {}", header.format, compiled_format),
                "compile the model again: tenon compile");
  }
  if (header.hash != header.own_hash()) damaged("its header is not what was written");
  if (header.file_bytes != file.size())
    damaged(fmt::format("it has {} bytes, {} were written", file.size(), header.file_bytes));
  return header;
}

std::span<const std::byte> checked_part(std::span<const std::byte> file, const CompiledHeader::Part& part,
                                        std::string_view name) {
  if (part.offset > file.size() || part.bytes > file.size() - part.offset)
    damaged(fmt::format("its {} lies outside of it", name));
  const auto bytes = file.subspan(part.offset, part.bytes);
  if (content_hash(bytes) != part.hash) damaged(fmt::format("its {} is not what was written", name));
  return bytes;
}

std::string_view text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

template <typename Visit>
void each_graph(ir::Graph& graph, const Visit& visit) {
  visit(graph);
  for (const ir::Node& node : graph.nodes()) {
    for (const ir::Attribute& attribute : node.attributes)
      attribute.for_each_graph([&](ir::Graph& subgraph) { each_graph(subgraph, visit); });
  }
}

// The graph as an ONNX model holds it: what a type has no words for, inference finds again.
class StorableModel {
 public:
  explicit StorableModel(const ir::Model& model) : model_(model.clone()) {
    model_->functions.clear();
    each_graph(*model_->graph, [&](ir::Graph& graph) {
      for (ir::Value& value : graph.values()) {
        forget_expressions(value.type);
        if (value.constant()) graph.set_initializer(value, stored(*value.constant(), value.name));
      }
      for (ir::Node& node : graph.nodes()) {
        if (node.origin) node.metadata.emplace_back(origin_name, write_origin(*node.origin));
      }
    });
  }

  const ir::Model& model() const { return *model_; }
  uint64_t unstored_bytes() const { return unstored_bytes_; }

 private:
  static void forget_expressions(ir::Type& type) {
    if (type.inner) {
      auto inner = std::make_shared<ir::Type>(*type.inner);
      forget_expressions(*inner);
      type.inner = std::move(inner);
    }
    if (!type.shape) return;
    for (Dim& dim : *type.shape)
      if (!dim.is_known() && dim.symbol_name().empty()) dim = Dim::unknown();
  }

  ir::ConstantPtr stored(const ir::Constant& constant, const std::string& name) {
    auto result = std::make_shared<ir::Constant>();
    result->name = name;
    result->tensor = constant.tensor;
    const Tensor& tensor = result->tensor;
    if (tensor.type() != ElementType::string &&
        (tensor.bytes() >= least_stored || (!tensor.raw() && tensor.bytes() > 0)))
      result->storage = ir::Constant::Storage::external;
    if (!tensor.raw() && tensor.bytes() > 0) {
      result->external_data = {{"location", std::string(unstored_name)}};
      unstored_bytes_ = std::max(unstored_bytes_, static_cast<uint64_t>(tensor.bytes()));
    }
    return result;
  }

  std::unique_ptr<ir::Model> model_;
  uint64_t unstored_bytes_ = 0;
};

void restore_origins(ir::Graph& main) {
  each_graph(main, [](ir::Graph& graph) {
    for (ir::Node& node : graph.nodes()) {
      node.origin.reset();
      const auto found = std::ranges::find(node.metadata, origin_name, &std::pair<std::string, std::string>::first);
      if (found == node.metadata.end()) continue;
      node.origin = std::make_shared<ir::Origin>(read_origin(found->second));
      node.metadata.erase(found);
    }
  });
}

StoredPiece write_piece(NewFile& file, int64_t offset, std::string_view bytes) {
  file.fill_to(offset);
  file.write(bytes);
  return {static_cast<uint64_t>(offset), bytes.size(), hash_of(bytes)};
}

CompiledHeader::Part write_part(NewFile& file, std::string_view bytes) {
  const StoredPiece piece = write_piece(file, round_up(file.position(), cache_line), bytes);
  return {piece.offset, piece.bytes, piece.hash};
}

}  // namespace

bool CompiledFile::is_one(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  char first[compiled_magic.size()] = {};
  file.read(first, sizeof(first));
  return std::string_view(first, sizeof(first)) == compiled_magic;
}

CompiledFile CompiledFile::open(const fs::path& path) {
  CompiledFile result;
  result.file_ = MappedFile::open(path);
  const std::span<const std::byte> bytes = result.file_->bytes();
  const CompiledHeader header = read_header(bytes);
  result.graph_ = checked_part(bytes, header.graph, "graph");
  try {
    result.description = read_description(text_of(checked_part(bytes, header.description, "description")));
  } catch (const Error& error) {
    if (error.code() == ErrorCode::damaged_file) throw;
    damaged("its description cannot be read: " + error.message());
  }
  return result;
}

std::span<const std::byte> CompiledFile::part(const StoredPiece& piece) const {
  const std::span<const std::byte> bytes = file_->bytes();
  if (piece.offset > bytes.size() || piece.bytes > bytes.size() - piece.offset || piece.offset % cache_line != 0)
    damaged("its packed weights lie outside of it");
  return bytes.subspan(piece.offset, piece.bytes);
}

std::unique_ptr<ir::Model> CompiledFile::read_model() {
  try {
    unstored_ = MappedFile::zeros(description.unstored_bytes);
    auto model =
        onnx::parse_model(graph_, {{std::string(contents_name), file_}, {std::string(unstored_name), unstored_}});
    restore_origins(*model->graph);
    return model;
  } catch (const Error& error) {
    damaged("its graph cannot be read: " + error.message());
  }
}

StoredPacking CompiledFile::packing() const {
  std::vector<StoredPacking::Entry> entries;
  for (const StoredEntry& stored : description.packed) {
    StoredPacking::Entry& entry = entries.emplace_back(StoredPacking::Entry{stored.key, {}});
    for (const StoredPiece& piece : stored.pieces) entry.pieces.push_back(part(piece));
  }
  return {file_, std::move(entries)};
}

bool CompiledFile::is_unstored(const Tensor& tensor) const {
  const auto* at = static_cast<const std::byte*>(tensor.raw());
  const auto none = unstored_->bytes();
  return at && !none.empty() && at >= none.data() && at < none.data() + none.size();
}

void CompiledFile::check_contents() const {
  const auto check = [&](const StoredPiece& piece, const std::string& name) {
    if (content_hash(part(piece)) != piece.hash)
      damaged(
          fmt::format("bytes {} to {}, {}, are not what was written", piece.offset, piece.offset + piece.bytes, name));
  };
  for (const StoredPiece& piece : description.tensors) check(piece, "a tensor");
  for (const StoredEntry& entry : description.packed) {
    for (const StoredPiece& piece : entry.pieces) check(piece, "packed weights");
  }
}

void write_compiled_file(const fs::path& path, CompiledKey key, const ModelReport& report, const ir::Model& model,
                         const RecordedPacking& packing) {
  const StorableModel storable(model);
  onnx::ExternalWriter tensors(std::string(contents_name), page, cache_line);
  const std::string graph = onnx::serialize_model(storable.model(), tensors);
  CompiledDescription description{std::move(key), report, storable.unstored_bytes(), {}, {}};
  NewFile file(path);
  file.fill_to(page);
  for (const auto& piece : tensors.pieces())
    description.tensors.push_back(write_piece(file, piece.offset, piece.bytes));
  for (const RecordedPacking::Entry& entry : packing.entries()) {
    StoredEntry& stored = description.packed.emplace_back(StoredEntry{entry.key, {}});
    for (const PackedBuffer& buffer : entry.buffers) {
      const int64_t offset = round_up(file.position(), buffer.size() >= large ? page : cache_line);
      stored.pieces.push_back(write_piece(file, offset, {buffer.as<char>(), buffer.size()}));
    }
  }
  CompiledHeader header{};
  header.graph = write_part(file, graph);
  header.description = write_part(file, write_description(description));
  header.file_bytes = static_cast<uint64_t>(file.position());
  header.hash = header.own_hash();
  file.go_to(0);
  file.write(text_of(std::as_bytes(std::span(&header, 1))));
  file.commit();
}

}  // namespace tenon

#include "onnx/value_file.h"

#include "base/fail.h"
#include "onnx/message_writer.h"
#include "onnx/tensor_reader.h"

namespace tenon::onnx {
namespace {

class ValueReader {
 public:
  ValueReader() : tensors_(nullptr, nullptr, ExternalData::in_folder({})) {}

  Value read(WireReader message, ir::Type::Kind kind, int depth = 0) {
    if (depth > 16) fail(ErrorCode::invalid_model, "values are nested too deep");
    using Kind = ir::Type::Kind;
    switch (kind) {
      case Kind::sequence:
        return sequence(message, depth);
      case Kind::optional:
        return optional(message, depth);
      case Kind::map:
        return map(message);
      case Kind::sparse_tensor: {
        auto sparse = tensors_.read_sparse(message);
        tensors_.finish();
        return SparseTensor{sparse->values->tensor, sparse->indices->tensor, sparse->shape};
      }
      default:
        return tensor(message);
    }
  }

 private:
  Tensor tensor(WireReader message) {
    auto constant = tensors_.read(message);
    tensors_.finish();
    return constant->tensor;
  }

  // SequenceProto: elem_type 2, then the items in a field per kind.
  Value sequence(WireReader message, int depth) {
    using Kind = ir::Type::Kind;
    Sequence result;
    while (message.next()) {
      switch (message.field()) {
        case 3:
          result.items.emplace_back(tensor(message.message()));
          break;
        case 4:
          result.items.push_back(read(message.message(), Kind::sparse_tensor, depth + 1));
          break;
        case 5:
          result.items.push_back(read(message.message(), Kind::sequence, depth + 1));
          break;
        case 6:
          result.items.push_back(read(message.message(), Kind::map, depth + 1));
          break;
        case 7:
          result.items.push_back(read(message.message(), Kind::optional, depth + 1));
          break;
        default:
          message.skip();
      }
    }
    return result;
  }

  Value optional(WireReader message, int depth) {
    using Kind = ir::Type::Kind;
    Optional result;
    auto hold = [&](Value value) { result.item = std::make_shared<const Value>(std::move(value)); };
    while (message.next()) {
      switch (message.field()) {
        case 3:
          hold(tensor(message.message()));
          break;
        case 4:
          hold(read(message.message(), Kind::sparse_tensor, depth + 1));
          break;
        case 5:
          hold(read(message.message(), Kind::sequence, depth + 1));
          break;
        case 6:
          hold(read(message.message(), Kind::map, depth + 1));
          break;
        case 7:
          hold(read(message.message(), Kind::optional, depth + 1));
          break;
        default:
          message.skip();
      }
    }
    return result;
  }

  // MapProto: key_type 2, keys 3 or string_keys 4, values 5 (a sequence of scalars).
  Value map(WireReader message) {
    int key_type = 0;
    std::vector<int64_t> keys;
    std::vector<std::string> string_keys;
    Sequence values;
    while (message.next()) {
      switch (message.field()) {
        case 2:
          key_type = message.int32();
          break;
        case 3:
          message.append_varints(keys);
          break;
        case 4:
          string_keys.push_back(message.string());
          break;
        case 5:
          values = sequence(message.message(), 0).sequence();
          break;
        default:
          message.skip();
      }
    }
    if (!is_known(key_type)) fail(ErrorCode::invalid_model, "a map has keys of unknown type {}", key_type);
    Map result;
    auto count = static_cast<int64_t>(values.items.size());
    bool strings = static_cast<ElementType>(key_type) == ElementType::string;
    result.keys =
        strings ? Tensor(Shape{static_cast<int64_t>(string_keys.size())}, std::span<const std::string>(string_keys))
                : Tensor(Shape{static_cast<int64_t>(keys.size())}, std::span<const int64_t>(keys));
    if (result.keys.elements() != count)
      fail(ErrorCode::invalid_model, "a map has {} keys and {} values", result.keys.elements(), count);
    if (count == 0) return result;
    const Tensor& first = values.items[0].tensor();
    result.values = Tensor(first.type(), Shape{count});
    auto* out = static_cast<std::byte*>(result.values.mutable_raw());
    for (const Value& value : values.items) {
      const Tensor& item = value.tensor();
      if (item.elements() != 1 || item.type() != first.type())
        fail(ErrorCode::unsupported, "a map's values must be scalars of one type");
      if (item.type() == ElementType::string)
        *reinterpret_cast<std::string*>(out) = item.data<std::string>()[0];
      else
        std::copy_n(static_cast<const std::byte*>(item.raw()), item.bytes(), out);
      out += bits_of(item.type()) / 8;
    }
    return result;
  }

  TensorReader tensors_;
};

}  // namespace

Value parse_value(std::span<const std::byte> bytes, const ir::Type& type) {
  WireReader message(std::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size()));
  return ValueReader().read(message, type.kind);
}

std::string serialize_tensor(const Tensor& tensor, const std::string& name) {
  ir::Constant constant;
  constant.tensor = tensor;
  constant.name = name;
  return write_tensor(constant, nullptr).to_string();
}

}  // namespace tenon::onnx

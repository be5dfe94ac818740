#include "base/fail.h"
#include "onnx/graph_reader.h"

namespace tenon::onnx {
namespace {

constexpr int deepest_type = 32;

ElementType element_type(int number) {
  if (number == 0) return ElementType::undefined;
  if (!is_known(number)) fail(ErrorCode::invalid_model, "element type {} is unknown", number);
  return static_cast<ElementType>(number);
}

// TensorShapeProto.
void read_shape(WireReader message, ir::Type& type, ir::Type::Details& details) {
  SymbolicShape shape;
  bool denoted = false;
  std::vector<std::string> denotations;
  while (message.next()) {
    if (message.field() != 1) {
      message.skip();
      continue;
    }
    WireReader dimension = message.message();
    Dim dim = Dim::unknown();
    std::string denotation;
    while (dimension.next()) {
      switch (dimension.field()) {
        case 1: {
          // Some exporters write -1 for a size that is not known.
          int64_t size = dimension.int64();
          dim = size < 0 ? Dim::unknown() : Dim(size);
          break;
        }
        case 2: {
          std::string name = dimension.string();
          dim = name.empty() ? Dim::unknown() : Dim::symbol(std::move(name));
          break;
        }
        case 3:
          denotation = dimension.string();
          break;
        default:
          dimension.skip();
      }
    }
    denoted |= !denotation.empty();
    shape.push_back(std::move(dim));
    denotations.push_back(std::move(denotation));
  }
  type.shape = std::move(shape);
  if (denoted) details.dim_denotations = std::move(denotations);
}

// TypeProto.Tensor and TypeProto.SparseTensor.
void read_tensor_type(WireReader message, ir::Type& type, ir::Type::Details& details) {
  while (message.next()) {
    if (message.field() == 1)
      type.element = element_type(message.int32());
    else if (message.field() == 2)
      read_shape(message.message(), type, details);
    else
      message.skip();
  }
}

// TypeProto.Sequence, Optional and Map: an optional key, and an inner type.
void read_container_type(WireReader message, ir::Type& type, uint32_t inner_field, int depth) {
  while (message.next()) {
    if (message.field() == inner_field) {
      type.inner = std::make_shared<const ir::Type>(read_type(message.message(), depth + 1));
    } else if (message.field() == 1) {
      type.element = element_type(message.int32());
    } else {
      message.skip();
    }
  }
  if (!type.inner) type.inner = std::make_shared<const ir::Type>();
}

}  // namespace

ir::Type read_type(WireReader message, int depth) {
  if (depth > deepest_type) fail(ErrorCode::invalid_model, "a type is nested more than {} deep", deepest_type);
  using Kind = ir::Type::Kind;
  ir::Type type;
  ir::Type::Details details;
  while (message.next()) {
    switch (message.field()) {
      case 1:
        type.kind = Kind::tensor;
        read_tensor_type(message.message(), type, details);
        break;
      case 8:
        type.kind = Kind::sparse_tensor;
        read_tensor_type(message.message(), type, details);
        break;
      case 4:
        type.kind = Kind::sequence;
        read_container_type(message.message(), type, 1, depth);
        break;
      case 9:
        type.kind = Kind::optional;
        read_container_type(message.message(), type, 1, depth);
        break;
      case 5:
        type.kind = Kind::map;
        read_container_type(message.message(), type, 2, depth);
        break;
      case 6:
        details.denotation = message.string();
        break;
      case 7: {
        type.kind = Kind::opaque;
        WireReader opaque = message.message();
        while (opaque.next()) {
          if (opaque.field() == 1)
            details.opaque_domain = opaque.string();
          else if (opaque.field() == 2)
            details.opaque_name = opaque.string();
          else
            opaque.skip();
        }
        break;
      }
      default:
        message.skip();
    }
  }
  if (type.kind == Kind::opaque || !details.denotation.empty() || !details.dim_denotations.empty()) {
    type.details = std::make_shared<const ir::Type::Details>(std::move(details));
  }
  return type;
}

}  // namespace tenon::onnx

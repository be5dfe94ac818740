#include "onnx/message_writer.h"

#include <cstring>

#include "base/fail.h"
#include "base/rounding.h"
#include "onnx/string_pairs.h"

namespace tenon::onnx {

int64_t ExternalWriter::add(std::string_view bytes) {
  const int64_t offset = round_up(end_, alignment_);
  pieces_.push_back({offset, bytes});
  end_ = offset + static_cast<int64_t>(bytes.size());
  return offset;
}

bool ExternalWriter::takes(const ir::Constant& constant) const {
  if (constant.tensor.type() == ElementType::string) return false;
  return from_ ? constant.tensor.bytes() >= *from_ : constant.storage == ir::Constant::Storage::external;
}

namespace {

WireWriter write_tensor_type(const ir::Type& type) {
  WireWriter out;
  out.int64(1, static_cast<int64_t>(type.element));
  if (type.shape) {
    WireWriter shape;
    for (size_t i = 0; i < type.shape->size(); ++i) {
      const Dim& dim = (*type.shape)[i];
      WireWriter dimension;
      if (dim.is_known())
        dimension.int64(1, dim.value());
      else if (!dim.has_unknown())
        dimension.bytes(2, dim.to_string());
      if (type.details && i < type.details->dim_denotations.size() && !type.details->dim_denotations[i].empty()) {
        dimension.bytes(3, type.details->dim_denotations[i]);
      }
      shape.message(1, std::move(dimension));
    }
    out.message(2, std::move(shape));
  }
  return out;
}

}  // namespace

WireWriter write_type(const ir::Type& type) {
  using Kind = ir::Type::Kind;
  WireWriter out, inner;
  switch (type.kind) {
    case Kind::unknown:
      break;
    case Kind::tensor:
      out.message(1, write_tensor_type(type));
      break;
    case Kind::sparse_tensor:
      out.message(8, write_tensor_type(type));
      break;
    case Kind::sequence:
    case Kind::optional:
      inner.message(1, write_type(*type.inner));
      out.message(type.kind == Kind::sequence ? 4 : 9, std::move(inner));
      break;
    case Kind::map:
      inner.int64(1, static_cast<int64_t>(type.element));
      inner.message(2, write_type(*type.inner));
      out.message(5, std::move(inner));
      break;
    case Kind::opaque:
      inner.bytes(1, type.details ? type.details->opaque_domain : "");
      inner.bytes(2, type.details ? type.details->opaque_name : "");
      out.message(7, std::move(inner));
      break;
  }
  if (type.details && !type.details->denotation.empty()) out.bytes(6, type.details->denotation);
  return out;
}

namespace {

// Reads element `i` of `size` bytes, sign-extended where the type is signed, as the varint fields hold it.
int64_t element_as_varint(const Tensor& tensor, int64_t i) {
  const auto* bytes = static_cast<const std::byte*>(tensor.raw());
  switch (tensor.type()) {
    case ElementType::int8:
      return tensor.data<int8_t>()[static_cast<size_t>(i)];
    case ElementType::int16:
      return tensor.data<int16_t>()[static_cast<size_t>(i)];
    case ElementType::int32:
      return tensor.data<int32_t>()[static_cast<size_t>(i)];
    default:
      break;
  }
  int64_t value = 0;
  int size = std::max(bits_of(tensor.type()) / 8, 1);
  std::memcpy(&value, bytes + i * size, static_cast<size_t>(size));
  return value;
}

void write_typed_fields(WireWriter& out, const Tensor& tensor) {
  std::string_view bytes(static_cast<const char*>(tensor.raw()), static_cast<size_t>(tensor.bytes()));
  switch (tensor.type()) {
    case ElementType::string:
      for (const std::string& text : tensor.data<std::string>()) out.bytes(6, text);
      return;
    case ElementType::float32:
    case ElementType::complex64:
      if (!bytes.empty()) out.reference(4, bytes);
      return;
    case ElementType::float64:
    case ElementType::complex128:
      if (!bytes.empty()) out.reference(10, bytes);
      return;
    default:
      break;
  }
  int bits = bits_of(tensor.type());
  int64_t count = bits >= 8 || bits == 6 ? tensor.elements() : tensor.bytes();
  std::vector<int64_t> numbers(static_cast<size_t>(count));
  for (int64_t i = 0; i < count; ++i) {
    numbers[static_cast<size_t>(i)] = bits == 6 ? load_packed(tensor.raw(), 6, i) : element_as_varint(tensor, i);
  }
  if (numbers.empty()) return;
  uint32_t field = tensor.type() == ElementType::int64                                            ? 7
                   : tensor.type() == ElementType::uint64 || tensor.type() == ElementType::uint32 ? 11
                                                                                                  : 5;
  out.packed_varints(field, numbers);
}

}  // namespace

WireWriter write_tensor(const ir::Constant& constant, ExternalWriter* external) {
  using Storage = ir::Constant::Storage;
  const Tensor& tensor = constant.tensor;
  WireWriter out;
  for (int64_t dim : tensor.shape()) out.int64(1, dim);
  out.int64(2, static_cast<int64_t>(tensor.type()));
  if (!constant.name.empty()) out.bytes(8, constant.name);
  if (!constant.doc_string.empty()) out.bytes(12, constant.doc_string);
  write_string_pairs(out, 16, constant.metadata);
  const bool outside = external && external->takes(constant);
  if (tensor.type() == ElementType::string || (constant.storage == Storage::typed_fields && !outside)) {
    write_typed_fields(out, tensor);
  } else {
    std::string_view bytes(static_cast<const char*>(tensor.raw()), static_cast<size_t>(tensor.bytes()));
    if (constant.storage == Storage::external && external && !tensor.raw() && !bytes.empty()) {
      write_string_pairs(out, 13, constant.external_data);
      out.int64(14, 1);
    } else if (outside) {
      int64_t offset = external->add(bytes);
      write_string_pairs(out, 13,
                         {{"location", external->file_name()},
                          {"offset", std::to_string(offset)},
                          {"length", std::to_string(bytes.size())}});
      out.int64(14, 1);
    } else {
      out.reference(9, bytes);
    }
  }
  out.raw_fields(constant.other_fields);
  return out;
}

WireWriter write_sparse_tensor(const ir::SparseConstant& sparse, ExternalWriter* external) {
  WireWriter out;
  out.message(1, write_tensor(*sparse.values, external));
  out.message(2, write_tensor(*sparse.indices, external));
  for (int64_t dim : sparse.shape) out.int64(3, dim);
  out.raw_fields(sparse.other_fields);
  return out;
}

}  // namespace tenon::onnx

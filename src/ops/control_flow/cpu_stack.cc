#include "ops/control_flow/cpu_stack.h"

#include <algorithm>

#include "base/fail.h"
#include "ops/cpu_support/strided_copy.h"

namespace tenon::ops {

void ScanOutput::add(const KernelRun& run, const Value& value) {
  if (!value.is_tensor())
    fail(ErrorCode::type_mismatch, "output {} collects tensors, the body gave {}", position_, value.describe());
  const Tensor& item = value.tensor();
  if (!items_.empty()) {
    const Tensor& first = items_.front();
    if (item.type() != first.type() || !(item.shape() == first.shape())) {
      fail(ErrorCode::shape_mismatch, "output {} collects {} in iteration 0 and {} in iteration {}; they must be equal",
           position_, Value(first).describe(), value.describe(), items_.size());
    }
  }
  if (items_.size() == items_.capacity()) {
    size_t capacity = std::max<size_t>(16, 2 * items_.capacity());
    reserved_ = run.scratch(static_cast<int64_t>(capacity * sizeof(Tensor)));
    items_.reserve(capacity);
  }
  items_.push_back(item);
}

Tensor ScanOutput::join(KernelRun& run, int64_t axis, bool reversed, const ir::Type& declared) const {
  Shape item_shape;
  ElementType type = declared.element;
  if (!items_.empty()) {
    item_shape = items_.front().shape();
    type = items_.front().type();
  } else if (declared.shape) {
    for (const Dim& dim : *declared.shape) item_shape.push_back(dim.is_known() ? dim.value() : 0);
  } else {
    // Nothing tells the rank: the least one that has the axis.
    const int64_t least = axis < 0 ? -(axis + 1) : axis;
    for (int64_t a = 0; a < std::min<int64_t>(least, 64); ++a) item_shape.push_back(0);
  }
  int rank = item_shape.rank() + 1;
  if (axis < 0) axis += rank;
  if (axis < 0 || axis >= rank)
    fail(ErrorCode::invalid_attribute, "axis {} of output {} is out of range for rank {}", axis, position_, rank);
  Shape shape;
  auto count = static_cast<int64_t>(items_.size());
  for (int a = 0; a < rank; ++a) shape.push_back(a == axis ? count : item_shape[a < axis ? a : a - 1]);

  bool packed = bits_of(type) < 8;
  Tensor to = packed ? Tensor(ElementType::uint8, shape, run.allocator()) : run.output(position_, type, shape);
  int64_t outer = shape.elements(0, static_cast<int>(axis)), inner = shape.elements(static_cast<int>(axis) + 1, rank);
  int64_t from_strides[] = {inner, 1}, to_strides[] = {count * inner, 1}, sizes[] = {outer, inner};
  for (int64_t i = 0; i < count; ++i) {
    const Tensor& item = items_[static_cast<size_t>(i)];
    Tensor source = packed ? unpack_codes(item, run.allocator()) : item;
    int64_t place = reversed ? count - 1 - i : i;
    strided_copy(run.threads(), to.type(), source.raw(), from_strides, element_at(to, place * inner), to_strides,
                 sizes);
  }
  if (!packed) return to;
  Tensor& result = run.output(position_, type, shape);
  pack_codes(to, result);
  return result;
}

Tensor slice_at(KernelRun& run, const Tensor& tensor, int axis, int64_t index) {
  Shape shape;
  for (int a = 0; a < tensor.rank(); ++a) {
    if (a != axis) shape.push_back(tensor.dim(a));
  }
  int64_t outer = tensor.shape().elements(0, axis), inner = tensor.shape().elements(axis + 1, tensor.rank());
  int bits = bits_of(tensor.type());
  if (outer == 1 && index * inner * bits % 8 == 0) return tensor.part(index * inner, shape);
  if (bits < 8) {
    Tensor packed(tensor.type(), shape, run.allocator());
    pack_codes(slice_at(run, unpack_codes(tensor, run.allocator()), axis, index), packed);
    return packed;
  }
  Tensor result(tensor.type(), shape, run.allocator());
  int64_t from_strides[] = {tensor.dim(axis) * inner, 1}, to_strides[] = {inner, 1}, sizes[] = {outer, inner};
  strided_copy(run.threads(), tensor.type(), element_at(tensor, index * inner), from_strides, result.mutable_raw(),
               to_strides, sizes);
  return result;
}

}  // namespace tenon::ops

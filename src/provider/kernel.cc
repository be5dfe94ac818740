#include "provider/kernel.h"

#include <cstring>

#include "base/fail.h"
#include "provider/output_shape.h"

namespace tenon {

std::vector<int64_t> KernelRun::ints(size_t i) const {
  const Tensor& tensor = input(i);
  if (tensor.type() == ElementType::int32) {
    auto numbers = tensor.data<int32_t>();
    return {numbers.begin(), numbers.end()};
  }
  auto numbers = tensor.data<int64_t>();
  return {numbers.begin(), numbers.end()};
}

Tensor& KernelRun::allocate_output(size_t i) {
  Value& value = *outputs_[i].value;
  return value.defined() ? value.tensor() : output(i, output_shape(*this, i));
}

const Shape& output_shape(const KernelRun& run, size_t i) {
  if (const std::optional<Shape>& shape = run.inferred_shape(i)) return *shape;
  std::string text;
  for (size_t k = 0; k < run.input_count(); ++k) {
    if (run.has_input(k)) text += fmt::format("\n  input {} is {}", k, run.value(k).describe());
  }
  fail(ErrorCode::shape_mismatch, "the shape of output {} does not follow from the inputs{}", i, text);
}

Tensor& KernelRun::output(size_t i, const Shape& shape) { return output(i, outputs_[i].element, shape); }

Tensor& KernelRun::output(size_t i, ElementType element, const Shape& shape) {
  Output& output = outputs_[i];
  TENON_CHECK(element != ElementType::undefined);
  if (output.is_placed) {
    Tensor& tensor = output.value->tensor();
    TENON_CHECK(tensor.type() == element && tensor.shape() == shape);
    return tensor;
  }
  *output.value = Tensor(element, shape, allocator_);
  return output.value->tensor();
}

void KernelRun::set_output(size_t i, Value value) {
  if (!wants_output(i)) return;
  if (!outputs_[i].is_placed) {
    *outputs_[i].value = std::move(value);
    return;
  }
  Tensor& tensor = outputs_[i].value->tensor();
  const Tensor& from = value.tensor();
  TENON_CHECK(tensor.type() == from.type() && tensor.shape() == from.shape());
  if (tensor.raw() != from.raw() && tensor.bytes() > 0)
    std::memmove(tensor.mutable_raw(), from.raw(), static_cast<size_t>(tensor.bytes()));
}

Subgraph& KernelRun::subgraph(std::string_view attribute) const {
  size_t index = 0;
  for (const ir::Attribute& a : node_.attributes) {
    size_t count = 0;
    a.for_each_graph([&](const ir::Graph&) { ++count; });
    if (a.name == attribute && count > 0) return *subgraphs_[index];
    index += count;
  }
  fail(ErrorCode::invalid_attribute, "attribute '{}' with a graph is missing", attribute);
}

}  // namespace tenon

#include "provider/kernel.h"

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

Tensor& KernelRun::output(size_t i) {
  Output& slot = outputs_[i];
  return slot.value.defined() ? slot.value.tensor() : output(i, output_shape(*this, i));
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
  Output& slot = outputs_[i];
  TENON_CHECK(element != ElementType::undefined);
  const Tensor& destination = slot.destination;
  bool fits = destination.defined() && destination.type() == element && destination.shape() == shape;
  slot.value = fits ? destination : Tensor(element, shape, allocator_);
  return slot.value.tensor();
}

void KernelRun::set_output(size_t i, Value value) {
  if (wants_output(i)) outputs_[i].value = std::move(value);
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

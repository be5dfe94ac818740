#include "ops/layout.h"

namespace tenon::ops {

std::optional<std::vector<int64_t>> Layout::ints(size_t input) const {
  const Tensor* tensor = input < contents.size() ? contents[input] : nullptr;
  if (!tensor) return std::nullopt;
  auto list = [](auto numbers) { return std::vector<int64_t>(numbers.begin(), numbers.end()); };
  if (tensor->type() == ElementType::int32) return list(tensor->data<int32_t>());
  if (tensor->type() == ElementType::int64) return list(tensor->data<int64_t>());
  return std::nullopt;
}

std::optional<int64_t> adjacent_part(const Shape& whole, const Shape& part, std::span<const int64_t> starts) {
  if (whole.rank() != part.rank()) return std::nullopt;
  // From the inside: whole axes, then one that is cut, then axes with one element each.
  int axis = whole.rank() - 1;
  while (axis >= 0 && whole[axis] == part[axis]) --axis;
  for (int outer = 0; outer < axis; ++outer) {
    if (part[outer] != 1) return std::nullopt;
  }
  int64_t first = 0, stride = 1;
  for (int a = whole.rank() - 1; a >= 0; --a) {
    first += starts[static_cast<size_t>(a)] * stride;
    stride *= whole[a];
  }
  return first;
}

std::optional<int64_t> adjacent_part(const Shape& whole, const Shape& part, int axis, int64_t start) {
  SmallVector<int64_t, 6> starts(static_cast<size_t>(whole.rank()));
  starts[static_cast<size_t>(axis)] = start;
  return adjacent_part(whole, part, {starts.data(), starts.size()});
}

std::optional<int64_t> whole_input_of_same_size(const Layout& layout, size_t output) {
  if (layout.inputs[0]->elements() != layout.outputs[output]->elements()) return std::nullopt;
  return 0;
}

}  // namespace tenon::ops

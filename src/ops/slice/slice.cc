#include "ops/slice/slice.h"
#include "ops/adapters.h"
#include "ops/inference.h"
#include "ops/layout.h"
#include "ops/operator.h"

namespace tenon::ops {

int64_t SliceRange::count_for(int64_t size) {
  auto clamp = [&](int64_t index, int64_t low, int64_t high) {
    if (index < 0) index = index < -size ? -1 : index + size;
    return std::clamp(index, low, high);
  };
  if (step > 0) {
    // A negative index beyond the front counts as the front.
    start = clamp(start, 0, size);
    end = clamp(end, 0, size);
    return end <= start ? 0 : (end - start - 1) / step + 1;
  }
  start = size > 0 ? clamp(start, 0, size - 1) : -1;
  end = clamp(end, -1, size - 1);
  // -(step + 1) + 1 without overflow for the smallest step.
  return start <= end
             ? 0
             : static_cast<int64_t>(static_cast<uint64_t>(start - end - 1) / (0 - static_cast<uint64_t>(step))) + 1;
}

namespace {

// One bound with a known sign, as an index from the front. Expressions count as sizes, which are not negative.
std::optional<Dim> from_front(const Dim& index, const Dim& size) {
  if (!index.is_known()) return index.has_unknown() ? std::nullopt : std::optional(min(index, size));
  if (index.value() < 0) return index.value() == INT64_MIN ? std::nullopt : std::optional(max(size + index, Dim(0)));
  if (index.value() >= INT32_MAX) return size;
  return min(index, size);
}

// The size of a sliced axis when sizes or bounds are expressions.
Dim sliced_size(const Dim& size, const Dim& start, const Dim& end, int64_t step) {
  if (step < 0) {
    bool whole = start.is(-1) || (start.is_known() && start.value() >= INT32_MAX);
    if (whole && end.is_known() && end.value() <= -INT32_MAX && step > -INT32_MAX) return ceil_div(size, Dim(-step));
    return Dim::unknown();
  }
  if (step > INT32_MAX) return Dim::unknown();
  bool to_end = end.is_known() && end.value() >= INT32_MAX;
  // Cutting k elements off one side is size - k, as long as there are k.
  if (start.is(0) && to_end) return ceil_div(size, Dim(step));
  std::optional<Dim> first = from_front(start, size), last = from_front(end, size);
  if (!first || !last) return Dim::unknown();
  Dim length = *last - *first;
  if (length.is_known() && length.value() < 0) length = Dim(0);
  if (!length.is_known()) length = max(length, Dim(0));
  return step == 1 ? length : ceil_div(length, Dim(step));
}

void infer_slice(Inference& i) {
  if (!i.has_shape(0)) return i.output(0, i.element(0), std::nullopt);
  const SymbolicShape& shape = i.shape(0);
  for (size_t input = 1; input < i.input_count(); ++input) {
    if (i.has_input(input)) i.require_rank(input, 1);
  }
  auto starts = i.values(1), ends = i.values(2), steps = i.values(4);
  auto axis_list = i.ints(3);
  SymbolicShape unknown;
  for (size_t axis = 0; axis < shape.size(); ++axis) unknown.push_back(Dim::unknown());
  if (i.has_input(3) && !axis_list) return i.output(0, i.element(0), std::move(unknown));

  size_t count = starts ? starts->size() : ends ? ends->size() : axis_list ? axis_list->size() : shape.size();
  if (!axis_list) {
    axis_list.emplace();
    for (size_t axis = 0; axis < count; ++axis) axis_list->push_back(static_cast<int64_t>(axis));
  }
  std::vector<int> axes = i.axes(*axis_list, i.rank(0));
  for (const auto& [list, name] : {std::pair{&starts, "starts"}, {&ends, "ends"}, {&steps, "steps"}}) {
    if (*list && (*list)->size() != axes.size())
      i.fail("{} has {} elements for {} axes", name, (*list)->size(), axes.size());
  }
  SymbolicShape result = shape;
  auto content = shape.size() <= 1 ? i.followed_values(0) : std::nullopt;
  for (size_t k = 0; k < axes.size(); ++k) {
    Dim& dim = result[static_cast<size_t>(axes[k])];
    Dim step = i.has_input(4) ? (steps ? (*steps)[k] : Dim::unknown()) : Dim(1);
    if (step.is(0)) i.fail_with(ErrorCode::invalid_value, fmt::format("the step of axis {} is 0", axes[k]));
    if (!starts || !ends || !step.is_known()) {
      dim = Dim::unknown();
      content.reset();
      continue;
    }
    const Dim &start = (*starts)[k], &end = (*ends)[k];
    if (!dim.is_known() || !start.is_known() || !end.is_known()) {
      dim = sliced_size(dim, start, end, step.value());
      content.reset();
      continue;
    }
    SliceRange range{start.value(), end.value(), step.value()};
    dim = Dim(range.count_for(dim.value()));
    if (!content) continue;
    SymbolicValues picked;
    for (int64_t n = 0; n < dim.value(); ++n)
      picked.push_back((*content)[static_cast<size_t>(range.start + n * range.step)]);
    content = std::move(picked);
  }
  i.output(0, i.element(0), std::move(result));
  if (content) i.output_values(0, std::move(*content));
}

std::optional<int64_t> find_slice(const Layout& layout, size_t) {
  auto starts = layout.ints(1), ends = layout.ints(2), axes = layout.ints(3), steps = layout.ints(4);
  auto is_given = [&](size_t i) { return i < layout.inputs.size() && layout.inputs[i]; };
  if (!starts || !ends || (is_given(3) && !axes) || (is_given(4) && !steps)) return std::nullopt;
  const Shape& whole = *layout.inputs[0];
  SmallVector<int64_t, 6> first(static_cast<size_t>(whole.rank()));
  for (size_t k = 0; k < starts->size(); ++k) {
    int64_t axis = axes ? (*axes)[k] : static_cast<int64_t>(k);
    if (axis < 0) axis += whole.rank();
    SliceRange range{(*starts)[k], (*ends)[k], steps ? (*steps)[k] : 1};
    const int64_t size = whole[static_cast<int>(axis)];
    const int64_t count = range.count_for(size);
    if (range.step != 1 && count != 1) return std::nullopt;
    first[static_cast<size_t>(axis)] = count > 0 ? range.start : 0;
  }
  return adjacent_part(whole, *layout.outputs[0], {first.data(), first.size()});
}

void bounds_to_inputs(ir::Node& node) {
  ints_attribute_to_input(node, "starts", 1);
  ints_attribute_to_input(node, "ends", 2);
  ints_attribute_to_input(node, "axes", 3);
}

std::string bounds_to_attributes(ir::Node& node) {
  if (const ir::Value* steps = node.input(4)) {
    if (!steps->is_fixed()) return "its steps are computed";
    const Tensor& tensor = steps->constant()->tensor;
    bool ones = true;
    if (tensor.type() == ElementType::int32)
      for (int32_t step : tensor.data<int32_t>()) ones &= step == 1;
    else
      for (int64_t step : tensor.data<int64_t>()) ones &= step == 1;
    if (!ones) return "its steps are not all 1";
  }
  for (size_t i = 1; i <= 3; ++i) {
    if (node.input(i) && !node.input(i)->is_fixed())
      return "its bounds are computed, older versions take constants only";
  }
  node.remove_trailing_inputs(4);
  ints_input_to_attribute(node, 3, "axes");
  ints_input_to_attribute(node, 2, "ends");
  return ints_input_to_attribute(node, 1, "starts");
}

}  // namespace

void define_slice(OperatorList& list) {
  list.add("Slice", {1, 10, 11, 13})
      .input("data", "T")
      .input("starts", "Tind")
      .input("ends", "Tind")
      .optional_input("axes", "Tind")
      .optional_input("steps", "Tind")
      .output("output", "T")
      .types("T", types::movable)
      .types("Tind", types::index)
      .infer(infer_slice)
      .reads(Reads::picked)
      .views(find_slice)
      .lift(1, 10, bounds_to_inputs)
      .lower(10, 1, bounds_to_attributes);
}

}  // namespace tenon::ops

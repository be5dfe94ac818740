#include <algorithm>

#include "base/fail.h"
#include "ops/cuda_support/element_text.h"
#include "ops/cuda_support/strided_copy.h"
#include "provider/output_shape.h"

namespace tenon::ops {
namespace {

struct PadPlan {
  std::vector<int64_t> before, after;
  bool is_copy = false;
  std::optional<CudaLoop> loop;
};

// What index `c` of an axis takes, for an axis of which `kept` elements from `low` on are left.
constexpr const char* source_text = R"(inline i64 source(i64 at, i64 kept, i64 low, int mode) {
  if (at >= 0 && at < kept) return low + at;
  if (mode == 0) return -1;
  if (mode == 1) return low + (at < 0 ? 0 : kept - 1);
  if (mode == 2) return low + (at % kept + kept) % kept;
  if (kept == 1) return low;
  const i64 period = 2 * (kept - 1), within = (at % period + period) % period;
  return low + (within < period - within ? within : period - within);
})";

int mode_of(const ir::Node& node) {
  const std::string mode = node.string_attribute("mode", "constant");
  return mode == "edge" ? 1 : mode == "wrap" ? 2 : mode == "reflect" ? 3 : 0;
}

PadPlan prepare(KernelRun& run, const Tensor& x, const Tensor& y, std::vector<int64_t> before,
                std::vector<int64_t> after, int mode, bool has_value) {
  PadPlan plan{std::move(before), std::move(after), false, {}};
  plan.is_copy = std::ranges::all_of(plan.before, [](int64_t n) { return n == 0; }) &&
                 std::ranges::all_of(plan.after, [](int64_t n) { return n == 0; });
  if (plan.is_copy || y.elements() == 0) return plan;
  // Axes after the last padded one move as one.
  int rank = x.rank();
  while (rank > 1 && plan.before[static_cast<size_t>(rank) - 1] == 0 && plan.after[static_cast<size_t>(rank) - 1] == 0)
    --rank;
  const int64_t block = x.shape().elements(rank, x.rank());
  std::vector<int64_t> numbers;
  for (int axis = 0; axis < rank; ++axis) numbers.push_back(y.dim(axis));
  numbers.push_back(block);
  std::string body = coordinates_in(index_text(y.elements()), rank + 1, 0) + fmt::format("i64 at = c{};\n    ", rank);
  const std::vector<int64_t> steps = steps_of(x.shape());
  for (int axis = 0; axis < rank; ++axis) {
    const auto a = static_cast<size_t>(axis);
    const int64_t low = std::max<int64_t>(0, -plan.before[a]);
    const int64_t kept = std::max<int64_t>(0, x.dim(axis) - std::max<int64_t>(0, -plan.after[a]) - low);
    if (kept == 0 && mode != 0) fail(ErrorCode::shape_mismatch, "axis {} has no elements left to pad with", axis);
    const size_t n = numbers.size();
    numbers.insert(numbers.end(), {std::max<int64_t>(0, plan.before[a]), kept, low, steps[a]});
    body +=
        fmt::format("const i64 s{} = source(c{} - v[{}], v[{}], v[{}], {});\n    ", axis, axis, n, n + 1, n + 2, mode);
    body += fmt::format("at = s{} < 0 || at < 0 ? -1 : at + s{} * v[{}];\n    ", axis, axis, n + 3);
  }
  const std::string_view type = moved_type_text(x.type());
  body += fmt::format("{} r = {{}};\n    if (at >= 0) r = x[at];\n    {}y[i] = r;", type,
                      has_value ? "else r = *value;\n    " : "");
  plan.loop.emplace(run, y.elements(), fmt::format("const {}* x, {}* y, const {}* value", type, type, type), body,
                    numbers, source_text);
  return plan;
}

void run_with(KernelRun& run, const PadPlan& plan, const Tensor* value) {
  const Tensor& x = run.input(0);
  Tensor& y = run.output(0);
  if (plan.is_copy && y.raw() != x.raw()) queue_of(run).copy(y.mutable_raw(), x.raw(), x.bytes());
  if (plan.loop) plan.loop->run(run, {x.raw(), y.raw(), value ? value->raw() : nullptr});
}

void run_pad(KernelRun& run) {
  const Tensor* value = run.has_input(2) && run.input(2).elements() > 0 ? &run.input(2) : nullptr;
  const auto& plan = run.per_plan<PadPlan>([&] {
    const Tensor& x = run.input(0);
    output_shape(run, 0);  // which inference knows only when it has checked pads and axes
    const auto rank = static_cast<size_t>(x.rank());
    std::vector<int64_t> pads = run.ints(1), axes, before(rank), after(rank);
    if (run.has_input(3)) axes = run.ints(3);
    for (size_t axis = 0; !run.has_input(3) && axis < rank; ++axis) axes.push_back(static_cast<int64_t>(axis));
    if (pads.size() != 2 * axes.size())
      fail(ErrorCode::shape_mismatch, "there are {} pads for {} axes; each takes two", pads.size(), axes.size());
    for (size_t k = 0; k < axes.size(); ++k) {
      const auto axis = static_cast<size_t>(axes[k] < 0 ? axes[k] + x.rank() : axes[k]);
      before[axis] = pads[k];
      after[axis] = pads[k + axes.size()];
    }
    if (value && value->elements() > 1)
      fail(ErrorCode::shape_mismatch, "constant_value must be one element, it has {}", value->elements());
    return prepare(run, x, run.output(0), std::move(before), std::move(after), mode_of(run.node()), value != nullptr);
  });
  run_with(run, plan, value);
}

void run_center_crop_pad(KernelRun& run) {
  const auto& plan = run.per_plan<PadPlan>([&] {
    const Tensor& x = run.input(0);
    const Tensor& y = run.output(0);
    std::vector<int64_t> before, after;
    for (int axis = 0; axis < x.rank(); ++axis) {
      // Halves are rounded towards the front of the larger of both.
      const int64_t difference = y.dim(axis) - x.dim(axis), front = difference / 2;
      before.push_back(front);
      after.push_back(difference - front);
    }
    return prepare(run, x, y, std::move(before), std::move(after), 0, false);
  });
  run_with(run, plan, nullptr);
}

}  // namespace

void cuda_pad(CudaKernels& list) {
  list.add_simple("Pad", run_pad, {.types = cuda_movable, .host_inputs = {1, 3}});
  list.add_simple("CenterCropPad", run_center_crop_pad, {.types = cuda_movable, .host_inputs = {1}});
}

}  // namespace tenon::ops

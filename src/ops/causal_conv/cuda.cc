#include <optional>

#include "ops/cuda_support/element_text.h"

namespace tenon::ops {
namespace {

struct CausalPlan {
  std::optional<CudaLoop> convolve, keep;
};

// Each channel: `taps` weights slide over past (taps - 1 values, zeros where there is none) followed by x.
CausalPlan prepare(KernelRun& run) {
  const Tensor &x = run.input(0), &weight = run.input(1);
  const int64_t channels = x.dim(1), length = x.dim(2), taps = weight.dim(2), rows = x.dim(0) * channels;
  const std::string functions = fmt::format(
      "typedef {} T; typedef Wide<T> C;\n"
      "// Number `at` of the past values and then x.\n"
      "inline C value(const T* x, const T* past, i64 at, i64 kept) {{\n"
      "  return at >= kept ? widen(x[at - kept]) : past ? widen(past[at]) : (C)0;\n}}\n",
      cuda::type_text(x.type()));
  const std::vector<int64_t> numbers{length, channels, taps, taps - 1};
  const bool activates = run.node().string_attribute("activation", "none") != "none";
  CausalPlan plan;
  if (run.wants_output(0) && length > 0)
    plan.convolve.emplace(
        run, rows * length, "const T* x, const T* weight, const T* bias, const T* past, T* y",
        fmt::format("typedef {} I; const I row = (I)i / (I)v[0], t = (I)i % (I)v[0], channel = row % (I)v[1];\n    "
                    "const T* own = past ? past + (i64)row * v[3] : past;\n    C sum = bias ? widen(bias[channel]) : "
                    "(C)0;\n    "
                    "for (i64 tap = 0; tap < v[2]; ++tap) sum += widen(weight[channel * v[2] + tap]) * "
                    "value(x + (i64)row * v[0], own, t + tap, v[3]);\n    {}y[i] = narrow<T>(sum);",
                    index_text(rows * length), activates ? "sum = sum / ((C)1 + exp(-sum));\n    " : ""),
        numbers, functions);
  if (run.wants_output(1) && taps > 1)
    plan.keep.emplace(
        run, rows * (taps - 1), "const T* x, const T* past, T* present",
        "const i64 row = i / v[3];\n    "
        "present[i] = narrow<T>(value(x + row * v[0], past ? past + row * v[3] : past, v[0] + i % v[3], v[3]));",
        numbers, functions);
  return plan;
}

void run_causal_conv(KernelRun& run) {
  const auto& plan = run.per_plan<CausalPlan>([&] { return prepare(run); });
  auto raw = [&](size_t i) { return run.has_input(i) ? run.input(i).raw() : nullptr; };
  if (plan.convolve) plan.convolve->run(run, {raw(0), raw(1), raw(2), raw(3), run.output(0).raw()});
  if (plan.keep) plan.keep->run(run, {raw(0), raw(3), run.output(1).raw()});
}

}  // namespace

void cuda_causal_conv(CudaKernels& list) {
  list.add_simple("CausalConvWithState", run_causal_conv, {.types = types::floats});
}

}  // namespace tenon::ops

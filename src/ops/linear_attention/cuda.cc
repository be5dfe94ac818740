#include <algorithm>
#include <cmath>
#include <optional>

#include "ops/cuda_support/element_text.h"

namespace tenon::ops {
namespace {

struct LinearPlan {
  std::shared_ptr<void> state;  // in float
  std::optional<CudaLoop> start, steps, finish;
};

// A thread has one column of the state of a head, through all steps: no column depends on another.
LinearPlan prepare(KernelRun& run) {
  const Tensor &key = run.input(1), &value = run.input(2);
  const ir::Node& node = run.node();
  const int64_t heads = node.int_attribute("kv_num_heads", 1);
  const int64_t group = node.int_attribute("q_num_heads", 1) / std::max<int64_t>(1, heads);
  const int64_t batch = key.dim(0), length = key.dim(1), k_size = key.dim(2) / heads, v_size = value.dim(2) / heads;
  const int64_t elements = batch * heads * k_size * v_size;
  const std::string functions = fmt::format("typedef {} T;\n", cuda::type_text(key.type()));
  LinearPlan plan;
  plan.state = queue_of(run).allocate(std::max<int64_t>(elements, 1) * 4);
  plan.start.emplace(run, elements, "const T* past, float* state", "state[i] = past ? widen(past[i]) : 0.0f;",
                     std::vector<int64_t>{}, functions);
  if (run.wants_output(1))
    plan.finish.emplace(run, elements, "const float* state, T* present", "present[i] = narrow<T>(state[i]);",
                        std::vector<int64_t>{}, functions);
  if (length == 0 || v_size == 0) return plan;
  float scale = node.float_attribute("scale", 0);
  if (scale == 0) scale = static_cast<float>(1 / std::sqrt(static_cast<double>(k_size)));
  // v: heads, length, sizes of keys and values, group, decays of a head, heads that beta has.
  const int64_t decays = run.has_input(4) ? run.input(4).dim(2) / heads : 0,
                rates = run.has_input(5) ? run.input(5).dim(2) : 0;
  const std::string body =
      R"(const i64 column = i % v[3], at_head = i / v[3], head = at_head % v[0], b = at_head / v[0];
    float* own = state + at_head * v[2] * v[3] + column;
    for (i64 t = 0; t < v[1]; ++t) {
      const i64 step = b * v[1] + t, at = step * v[0] + head;
      const T* k_row = key + at * v[2];
      float added = widen(value[at * v[3] + column]), reached = 0;
      for (i64 k = 0; k < v[2]; ++k) {
        float kept = own[k * v[3]];
        if (decay) kept *= exp(widen(decay[at * v[5] + (v[5] == 1 ? 0 : k)]));
        if (decay) own[k * v[3]] = kept;
        if (beta) reached += widen(k_row[k]) * kept;
      }
      if (beta) added = (added - reached) * widen(beta[step * v[6] + (v[6] == 1 ? 0 : head)]);
      for (i64 k = 0; k < v[2]; ++k) own[k * v[3]] += widen(k_row[k]) * added;
      for (i64 g = 0; y && g < v[4]; ++g) {
        const i64 at_query = (step * v[0] + head) * v[4] + g;
        float sum = 0;
        for (i64 k = 0; k < v[2]; ++k) sum += widen(query[at_query * v[2] + k]) * own[k * v[3]];
        y[at_query * v[3] + column] = narrow<T>(scale * sum);
      }
    })";
  plan.steps.emplace(
      run, batch * heads * v_size,
      "const T* query, const T* key, const T* value, const T* decay, const T* beta, float* state, T* y",
      fmt::format("const float scale = {};\n    ", cuda::number_text(scale, ElementType::float32)) + body,
      std::vector<int64_t>{heads, length, k_size, v_size, group, decays, rates}, functions);
  return plan;
}

void run_linear_attention(KernelRun& run) {
  const auto& plan = run.per_plan<LinearPlan>([&] { return prepare(run); });
  auto raw = [&](size_t i) { return run.has_input(i) ? run.input(i).raw() : nullptr; };
  void* state = plan.state.get();
  plan.start->run(run, {raw(3), state});
  if (plan.steps)
    plan.steps->run(
        run, {raw(0), raw(1), raw(2), raw(4), raw(5), state, run.wants_output(0) ? run.output(0).raw() : nullptr});
  if (plan.finish) plan.finish->run(run, {state, run.output(1).raw()});
}

// The state may have a type of its own.
std::string decline(const ir::Node& node) {
  const ElementType type = node.input(1)->type.element;
  for (std::span<ir::Value* const> values : {node.inputs(), node.outputs()}) {
    for (const ir::Value* value : values) {
      if (value && value->type.element != type) return "the CUDA kernel of LinearAttention takes tensors of one type";
    }
  }
  return type == ElementType::float64 ? "the CUDA kernel of LinearAttention computes in float" : "";
}

}  // namespace

void cuda_linear_attention(CudaKernels& list) {
  list.add_simple("LinearAttention", run_linear_attention, {.types = types::floats, .decline = decline});
}

}  // namespace tenon::ops

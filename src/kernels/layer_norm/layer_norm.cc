#include "kernels/layer_norm/layer_norm.h"

#include <cmath>

namespace tenon::kernels {
namespace {

constexpr int64_t elements_per_task = 8192;

// `rows` if nothing is added first, else `row` for each.
template <class Row>
void each_row(ThreadPool& pool, const NormRows& call, void (*rows)(const NormRows&, int64_t, int64_t), Row row) {
  if (call.n <= 0) return;
  pool.parallel_for(call.rows, 1 + elements_per_task / call.n, [&](int64_t begin, int64_t end) {
    if (!call.addends[0].data) return rows(call, begin, end);
    for (int64_t i = begin; i < end; ++i) row(i, call.x + i * call.n, call.y + i * call.n);
  });
}

// Makes x point to row i of what is normalised, and returns what that adds up to.
float add_addends(const NormRows& call, int64_t i, const float*& x, float* y) {
  float* sum = call.sum ? call.sum + i * call.n : y;
  const float total =
      layer_norm_kernels().add(x, call.addends[0].row(i, call.n), call.addends[1].row(i, call.n), sum, call.n);
  x = sum;
  return total;
}

}  // namespace

Isa layer_norm_isa() { return layer_norm_kernels().isa; }

void layer_norm(ThreadPool& pool, const NormRows& call) {
  const LayerNormKernels& kernels = layer_norm_kernels();
  const float count = static_cast<float>(call.n);
  each_row(pool, call, kernels.layer_norm, [&](int64_t i, const float* x, float* y) {
    const float mean = add_addends(call, i, x, y) / count;
    const float factor = 1.0f / std::sqrt(kernels.sum_of_squares(x, mean, call.n) / count + call.epsilon);
    kernels.apply(x, y, call.n, mean, factor, call.scale, call.bias);
    if (call.mean) call.mean[i] = mean;
    if (call.inverse_deviation) call.inverse_deviation[i] = factor;
  });
}

void rms_norm(ThreadPool& pool, const NormRows& call) {
  const LayerNormKernels& kernels = layer_norm_kernels();
  const float count = static_cast<float>(call.n);
  each_row(pool, call, kernels.rms_norm, [&](int64_t i, const float* x, float* y) {
    add_addends(call, i, x, y);
    const float factor = 1.0f / std::sqrt(kernels.sum_of_squares(x, 0.0f, call.n) / count + call.epsilon);
    kernels.apply(x, y, call.n, 0.0f, factor, call.scale, call.bias);
    if (call.inverse_deviation) call.inverse_deviation[i] = factor;
  });
}

}  // namespace tenon::kernels

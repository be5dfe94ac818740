#include <benchmark/benchmark.h>

#include "kernels/math/math.h"
#include "kernels/peak/floats.h"

namespace tenon::kernels {
namespace {

void math_array(benchmark::State& state, void (*function)(const float*, float*, int64_t)) {
  Floats x(4096), y(4096);
  for (size_t i = 0; i < x.size(); ++i) x[i] = 0.001f * static_cast<float>(i + 1);
  for (auto _ : state) {
    function(x.data(), y.data(), 4096);
    benchmark::ClobberMemory();
  }
  state.counters["elements/s"] = benchmark::Counter(4096, benchmark::Counter::kIsIterationInvariantRate);
}
BENCHMARK_CAPTURE(math_array, exp, f32_exp);
BENCHMARK_CAPTURE(math_array, log, f32_log);
BENCHMARK_CAPTURE(math_array, tanh, f32_tanh);
BENCHMARK_CAPTURE(math_array, sigmoid, f32_sigmoid);
BENCHMARK_CAPTURE(math_array, erf, f32_erf);
BENCHMARK_CAPTURE(math_array, gelu, f32_gelu);
BENCHMARK_CAPTURE(math_array, gelu_tanh, f32_gelu_tanh);
BENCHMARK_CAPTURE(math_array, silu, f32_silu);
BENCHMARK_CAPTURE(math_array, hard_swish, f32_hard_swish);
BENCHMARK_CAPTURE(math_array, softplus, f32_softplus);
BENCHMARK_CAPTURE(math_array, sin, f32_sin);
BENCHMARK_CAPTURE(math_array, tan, f32_tan);
BENCHMARK_CAPTURE(math_array, atan, f32_atan);
BENCHMARK_CAPTURE(math_array, sinh, f32_sinh);
BENCHMARK_CAPTURE(math_array, asinh, f32_asinh);
BENCHMARK_CAPTURE(math_array, atanh, f32_atanh);
BENCHMARK_CAPTURE(math_array, acos, f32_acos);
BENCHMARK_CAPTURE(math_array, reciprocal, f32_reciprocal);

void math_pow(benchmark::State& state) {
  Floats x(4096), z(4096);
  for (size_t i = 0; i < x.size(); ++i) x[i] = 0.001f * static_cast<float>(i + 1);
  const float exponent = 2.5f;
  for (auto _ : state) {
    f32_pow({x.data(), 1, &exponent, 0, z.data(), 4096});
    benchmark::ClobberMemory();
  }
  state.counters["elements/s"] = benchmark::Counter(4096, benchmark::Counter::kIsIterationInvariantRate);
}
BENCHMARK(math_pow);

}  // namespace
}  // namespace tenon::kernels

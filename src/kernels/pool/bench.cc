#include <benchmark/benchmark.h>

#include <vector>

#include "kernels/pool/pool.h"

namespace tenon::kernels {
namespace {

// Arguments: planes, height and width, kernel, stride.
void max_pool_image(benchmark::State& state) {
  PoolShape s;
  s.planes = state.range(0);
  for (int d = 1; d < 3; ++d) {
    s.input[d] = state.range(1), s.kernel[d] = state.range(2), s.stride[d] = state.range(3);
    s.output[d] = (s.input[d] - s.kernel[d]) / s.stride[d] + 1;
  }
  ThreadPool pool(1);
  std::vector<float> x(static_cast<size_t>(s.planes * s.input_size())),
      y(static_cast<size_t>(s.planes * s.output_size()));
  for (auto _ : state) max_pool(pool, s, x.data(), y.data());
  state.counters["GB/s"] = benchmark::Counter(4e-9 * static_cast<double>(x.size() + y.size()),
                                              benchmark::Counter::kIsIterationInvariantRate);
}
BENCHMARK(max_pool_image)->Args({64, 112, 3, 2})->Args({64, 56, 2, 2})->Args({64, 56, 3, 1});

// The same with 8 channels side by side.
void max_pool_blocked_image(benchmark::State& state) {
  PoolShape s;
  s.planes = state.range(0) / 8;
  for (int d = 0; d < 2; ++d) {
    s.input[d] = state.range(1), s.kernel[d] = state.range(2), s.stride[d] = state.range(3);
    s.output[d] = (s.input[d] - s.kernel[d]) / s.stride[d] + 1;
  }
  s.input[2] = s.output[2] = 8;
  ThreadPool pool(1);
  std::vector<float> x(static_cast<size_t>(s.planes * s.input_size())),
      y(static_cast<size_t>(s.planes * s.output_size()));
  for (auto _ : state) max_pool(pool, s, x.data(), y.data());
  state.counters["GB/s"] = benchmark::Counter(4e-9 * static_cast<double>(x.size() + y.size()),
                                              benchmark::Counter::kIsIterationInvariantRate);
}
BENCHMARK(max_pool_blocked_image)->Args({64, 112, 3, 2})->Args({128, 56, 2, 2})->Args({64, 56, 3, 1});

}  // namespace
}  // namespace tenon::kernels

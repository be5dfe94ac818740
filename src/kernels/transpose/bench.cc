#include <benchmark/benchmark.h>

#include <vector>

#include "kernels/peak/floats.h"
#include "kernels/transpose/transpose.h"

namespace tenon::kernels {
namespace {

void transpose_array(benchmark::State& state, std::vector<int64_t> dims, std::vector<int64_t> permutation) {
  size_t count = 1;
  for (int64_t dim : dims) count *= static_cast<size_t>(dim);
  ThreadPool pool(1);
  Floats from(count), to(count);
  for (auto _ : state) transpose(pool, from.data(), to.data(), dims, permutation, sizeof(float));
  state.counters["GB/s"] =
      benchmark::Counter(8e-9 * static_cast<double>(count), benchmark::Counter::kIsIterationInvariantRate);
}
BENCHMARK_CAPTURE(transpose_array, matrix, {1024, 1024}, {1, 0});
BENCHMARK_CAPTURE(transpose_array, heads, {128, 12, 64}, {1, 0, 2});
BENCHMARK_CAPTURE(transpose_array, nchw_to_nhwc, {1, 64, 56, 56}, {0, 2, 3, 1});

}  // namespace
}  // namespace tenon::kernels

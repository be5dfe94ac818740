#include <vector>

#include "kernels/gemm_nbits/gemm_nbits.h"
#include "kernels/peak/report.h"

namespace tenon::kernels {
namespace {

// Rows, columns, steps of k, bits, digits; in blocks of 32.
void gemm_nbits_rows(benchmark::State& state) {
  const int64_t m = state.range(0), n = state.range(1), k = state.range(2), block = 32;
  const int bits = static_cast<int>(state.range(3));
  ThreadPool pool(bench_threads());
  const std::vector<uint8_t> codes(static_cast<size_t>(n * k * bits / 8), 0x5a);
  const std::vector<float> scales(static_cast<size_t>(n * k / block), 0.01f);
  const NbitsWeights weights(pool, {n, k, bits, block, codes.data(), scales.data(), false, nullptr, nullptr});
  std::vector<float> a(static_cast<size_t>(m * k)), y(static_cast<size_t>(m * n));
  for (size_t i = 0; i < a.size(); ++i) a[i] = static_cast<float>(i % 101) - 50.0f;
  for (auto _ : state) gemm_nbits(pool, static_cast<int>(state.range(4)), m, a.data(), weights, nullptr, y.data());
  state.SetLabel(nbits_kernels().name);
  state.counters["GOP/s"] =
      benchmark::Counter(2.0 * static_cast<double>(m * n * k), benchmark::Counter::kIsIterationInvariantRate);
}

void shapes(benchmark::internal::Benchmark* benchmark) {
  for (int64_t bits : {4, 8}) {
    for (int64_t digits : {1, 2, 3}) {
      for (int64_t rows : {1, 4, 6, 8, 16, 128}) benchmark->Args({rows, 1024, 1024, bits, digits});
    }
  }
  benchmark->UseRealTime();
}
BENCHMARK(gemm_nbits_rows)->Apply(shapes);

}  // namespace
}  // namespace tenon::kernels

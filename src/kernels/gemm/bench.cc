#include "kernels/gemm/gemm.h"
#include "kernels/peak/floats.h"
#include "kernels/peak/report.h"

namespace tenon::kernels {
namespace {

// A vector times a matrix is bound by reading the matrix.
void report(benchmark::State& state, int64_t m, int64_t n, int64_t k) {
  if (m == 1) return report_bytes(state, 4.0 * static_cast<double>(n * k));
  report_flops(state, 2.0 * static_cast<double>(m * n * k), state.range(3));
}

void gemm_square(benchmark::State& state) {
  const int64_t m = state.range(0), n = state.range(1), k = state.range(2);
  ThreadPool pool(static_cast<int>(state.range(3)));
  Floats a(static_cast<size_t>(m * k), 1.0f), b(static_cast<size_t>(k * n), 1.0f), c(static_cast<size_t>(m * n));
  for (auto _ : state) gemm(pool, m, n, k, {a.data(), k}, {b.data(), n}, c.data(), n);
  report(state, m, n, k);
}
BENCHMARK(gemm_square)
    ->Args({64, 64, 64, 1})
    ->Args({128, 128, 128, 1})
    ->Args({384, 384, 384, 1})
    ->Args({512, 512, 512, 1})
    ->Args({1024, 1024, 1024, 1})
    ->Args({1024, 1024, 1024, 2})
    ->Args({384, 3072, 768, 1})
    ->Args({1, 4096, 4096, 1})
    ->Args({4, 4096, 4096, 1})
    ->Args({16, 4096, 4096, 1})
    ->UseRealTime();

void gemm_packed_right(benchmark::State& state) {
  const int64_t m = state.range(0), n = state.range(1), k = state.range(2);
  ThreadPool pool(static_cast<int>(state.range(3)));
  Floats a(static_cast<size_t>(m * k), 1.0f), b(static_cast<size_t>(k * n), 1.0f), c(static_cast<size_t>(m * n));
  const PackedMatrix packed(pool, GemmSide::right, k, n, {b.data(), n});
  for (auto _ : state) gemm(pool, m, {a.data(), k}, packed, c.data(), n);
  report(state, m, n, k);
}
BENCHMARK(gemm_packed_right)
    ->Args({1, 1024, 256, 1})
    ->Args({1, 768, 768, 1})
    ->Args({1, 4096, 4096, 1})
    ->Args({4, 4096, 4096, 1})
    ->Args({49, 3072, 768, 1})
    ->Args({128, 768, 768, 1})
    ->Args({384, 384, 384, 1})
    ->Args({384, 768, 768, 1})
    ->Args({784, 768, 192, 1})
    ->Args({3136, 384, 96, 1})
    ->Args({1024, 1024, 1024, 2})
    ->UseRealTime();

}  // namespace
}  // namespace tenon::kernels

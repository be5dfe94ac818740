#include <algorithm>
#include <vector>

#include "kernels/gemm/multiplication.h"
#include "kernels/gemm_int8/gemm_int8.h"
#include "kernels/peak/report.h"
#include "kernels/scratch.h"

namespace tenon::kernels {
namespace {

// Operations a second of one core that has its codes in registers.
double peak_operations() {
  const Int8Kernels& kernels = int8_kernels();
  const Multiplication multiplication(kernels);
  const std::vector<uint8_t> codes(4096, 3);
  constexpr int64_t steps = 10'000;
  return best_rate(0.02, [&] {
    benchmark::DoNotOptimize(kernels.peak(steps, codes.data()));
    return static_cast<double>(steps * kernels.peak_operations);
  });
}

void report(benchmark::State& state, int64_t m, int64_t n, int64_t k) {
  static const double peak = peak_operations();
  state.SetLabel(int8_kernels().name);
  report_share(state, "GOP/s", 2.0 * static_cast<double>(m * n * k), peak * static_cast<double>(bench_threads()));
}

struct Operands {
  explicit Operands(const benchmark::State& state)
      : m(state.range(0)),
        n(state.range(1)),
        k(state.range(2)),
        a(static_cast<size_t>(m * k)),
        b(static_cast<size_t>(k * n), 5) {
    std::fill_n(a.as<uint8_t>(), m * k, uint8_t{3});
  }
  ByteMatrix left() const { return {a.as<uint8_t>(), false, k}; }
  ByteMatrix right() const { return {b.data(), true, n}; }

  int64_t m, n, k;
  AlignedBuffer a;  // as tensors of a session are
  std::vector<uint8_t> b;
  int32_t a_zero = 121;
};

void shapes(benchmark::internal::Benchmark* benchmark) {
  benchmark->Args({512, 512, 512})
      ->Args({128, 768, 768})
      ->Args({128, 3072, 768})
      ->Args({128, 768, 3072})
      ->Args({197, 768, 768})
      ->Args({128, 128, 64})
      ->Args({1, 768, 768})
      ->UseRealTime();
}

// Both sides are packed anew, and sums are stored.
void gemm_int8_sums(benchmark::State& state) {
  const Operands x(state);
  ThreadPool pool(bench_threads());
  std::vector<int32_t> c(static_cast<size_t>(x.m * x.n));
  const auto store = stored_sums(c.data(), x.n);
  for (auto _ : state) gemm_int8(&pool, x.m, x.n, x.k, x.left(), {&x.a_zero}, x.right(), {}, nullptr, store);
  report(state, x.m, x.n, x.k);
}
BENCHMARK(gemm_int8_sums)->Apply(shapes);

// Weights are packed ahead, and sums become codes, as in QLinearMatMul.
void gemm_int8_codes(benchmark::State& state) {
  const Operands x(state);
  ThreadPool pool(bench_threads());
  const PackedBytes packed(pool, GemmSide::right, x.n, x.k, x.right(), {});
  const std::vector<float> scales(static_cast<size_t>(x.n), 0.001f);
  const AlignedBuffer y(static_cast<size_t>(x.m * x.n));
  const CodesOfSums codes{scales.data(), false, 100, y.as<uint8_t>(), x.n};
  for (auto _ : state) gemm_int8(&pool, x.m, x.left(), {&x.a_zero}, packed, nullptr, codes);
  report(state, x.m, x.n, x.k);
}
BENCHMARK(gemm_int8_codes)->Apply(shapes);

}  // namespace
}  // namespace tenon::kernels

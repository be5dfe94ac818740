#include <benchmark/benchmark.h>

#include <cmath>
#include <vector>

#include "kernels/fft/fft.h"

namespace tenon::kernels {
namespace {

template <typename T>
void fft(benchmark::State& state) {
  const Fft<T> plan(state.range(0));
  std::vector<T> real(static_cast<size_t>(state.range(0))), imaginary(real.size());
  std::vector<T> work(static_cast<size_t>(plan.work_size()));
  for (auto _ : state) plan.transform(real.data(), imaginary.data(), work.data());
  // By convention, as if by radix 2.
  const auto n = static_cast<double>(state.range(0));
  state.counters["GFLOP/s"] =
      benchmark::Counter(5e-9 * n * std::log2(n), benchmark::Counter::kIsIterationInvariantRate);
}
// Frames of speech models, powers of two, a prime.
BENCHMARK(fft<float>)->Arg(400)->Arg(512)->Arg(1024)->Arg(2048)->Arg(65536)->Arg(1009);
BENCHMARK(fft<double>)->Arg(400)->Arg(1024)->Arg(65536);

}  // namespace
}  // namespace tenon::kernels

#include <vector>

#include "kernels/peak/report.h"

namespace tenon::kernels {
namespace {

void peak(benchmark::State& state) {
  constexpr int64_t steps = 10'000;
  const std::vector<float> factors(32, 0.5f);
  for (auto _ : state) benchmark::DoNotOptimize(peak_kernels().multiply_add(steps, factors.data()));
  report_flops(state, static_cast<double>(steps * peak_kernels().flops_per_step));
}
BENCHMARK(peak);

// What all threads reach together, where each has a core of its own or not.
void peak_of_threads(benchmark::State& state) {
  ThreadPool pool(bench_threads());
  const ThreadPool::Run run(pool);
  double flops = 0;
  for (auto _ : state) flops = multiply_add_all(pool);
  report_flops(state, flops, pool.size());
}
BENCHMARK(peak_of_threads)->UseRealTime();

void read_memory(benchmark::State& state) {
  const std::vector<float> data(64 << 20, 1.0f);
  for (auto _ : state) benchmark::DoNotOptimize(peak_kernels().read(data.data(), static_cast<int64_t>(data.size())));
  report_bytes(state, 4.0 * static_cast<double>(data.size()));
}
BENCHMARK(read_memory);

}  // namespace
}  // namespace tenon::kernels

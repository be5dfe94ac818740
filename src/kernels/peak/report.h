// What benchmarks of kernels print: the rate that was reached, the core's measured peak, and the share of it.
#pragma once

#include <benchmark/benchmark.h>

#include <cstdlib>
#include <string>

#include "base/thread_pool.h"
#include "kernels/peak/peak.h"

namespace tenon::kernels {

// How many threads benchmarks use: what the environment variable TENON_THREADS says, else 1.
inline int bench_threads() { return std::getenv("TENON_THREADS") ? default_thread_count() : 1; }

inline void report_share(benchmark::State& state, const std::string& unit, double work, double peak) {
  using benchmark::Counter;
  state.counters[unit] = Counter(1e-9 * work, Counter::kIsIterationInvariantRate);
  state.counters["peak"] = Counter(1e-9 * peak);
  state.counters["%"] = Counter(100 * work / peak, Counter::kIsIterationInvariantRate);
}

// `flops` or `bytes` is what one iteration takes; threads are expected to reach so many times the peak of one.
inline void report_flops(benchmark::State& state, double flops, int64_t threads = 1) {
  static const double peak = peak_flops();
  report_share(state, "GFLOP/s", flops, peak * static_cast<double>(threads));
}
inline void report_bytes(benchmark::State& state, double bytes) {
  static const double peak = peak_read_bytes();
  report_share(state, "GB/s", bytes, peak);
}

}  // namespace tenon::kernels

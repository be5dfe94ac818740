#pragma once

#include <functional>
#include <span>
#include <vector>

#include "tenon/session.h"

namespace tenon::tools {

// How long runs took, in seconds.
struct Latency {
  int64_t runs = 0;
  double min = 0, mean = 0, p50 = 0, p90 = 0, p95 = 0, p99 = 0, max = 0;
};

// All 0 where there are no runs.
Latency latency_of(std::vector<double> seconds);

// The value that `fraction` (0 to 1) of the sorted values do not exceed, on the line between the nearest two: of n
// values that at position fraction * (n - 1), counted from 0. There is at least one value.
double percentile(std::span<const double> sorted, double fraction);

struct BenchOptions {
  // Measured runs of all threads together; 0: as many as begin in time.
  int64_t runs = 0;
  // No measured run begins later than this; 0: no limit, if there is one to the runs. Each thread runs once at least.
  double seconds = 3;
  // Runs of each thread before those that are measured.
  int64_t warmup = 3;
  // Inputs and outputs are in the GPU's memory.
  bool on_device = false;
  // Threads that call run() at the same time, on the one session.
  int concurrency = 1;
  // Is told now and then, on the calling thread, how much of the work is done: 0 to 1.
  std::function<void(double)> progress;
};

struct BenchResult {
  double first_run = 0;   // seconds of the first one, which plans for the shapes
  Latency latency;        // of the measured runs
  double seconds = 0;     // from the start of the first of them to the end of the last
  double throughput = 0;  // of them per second
};

// Runs the model again and again. Throws what a run throws.
BenchResult bench(const Session& session, const NamedValues& inputs, const BenchOptions& options = {});

}  // namespace tenon::tools

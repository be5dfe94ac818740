#include "tenon/tools/benchmark.h"

#include <fmt/core.h>

#include <algorithm>
#include <atomic>
#include <barrier>
#include <chrono>
#include <cmath>
#include <exception>
#include <limits>
#include <numeric>
#include <system_error>
#include <thread>

#include "tenon/device.h"

namespace tenon::tools {
namespace {

// The GPU that a session computes on, as its provider is called.
std::string gpu_of(const Session& session) {
  const auto& nodes = session.placement();
  auto found = std::ranges::find_if(nodes, [](const NodePlacement& node) { return node.provider.starts_with("cuda"); });
  return found == nodes.end() ? "cuda" : found->provider;
}

using Clock = std::chrono::steady_clock;

double seconds_between(Clock::time_point from, Clock::time_point to) {
  return std::chrono::duration<double>(to - from).count();
}

// Threads that warm up, wait for each other, and then run until there is enough.
class Bench {
 public:
  Bench(const Session& session, const NamedValues& inputs, const BenchOptions& options)
      : session_(session),
        inputs_(inputs),
        options_(options),
        most_runs_(options.runs > 0 ? options.runs : std::numeric_limits<int64_t>::max()),
        most_seconds_(options.seconds > 0 ? options.seconds : std::numeric_limits<double>::infinity()),
        workers_(static_cast<size_t>(options.concurrency)),
        ready_(options.concurrency, Start{this}) {}

  void run() {
    {
      std::vector<std::jthread> threads;
      try {
        for (size_t i = 1; i < workers_.size(); ++i) threads.emplace_back([this, i] { work(workers_[i]); });
      } catch (const std::system_error&) {
        stopped_ = true;
        for (size_t i = threads.size(); i < workers_.size(); ++i) ready_.arrive_and_drop();
        throw Error(ErrorCode::invalid_argument,
                    fmt::format("the system does not let this process start {} threads", workers_.size()),
                    "bench with less concurrency");
      }
      work(workers_[0]);
    }
    for (const Worker& worker : workers_) {
      if (worker.failure) std::rethrow_exception(worker.failure);
    }
  }

  BenchResult result() const {
    BenchResult result;
    std::vector<double> all;
    for (const Worker& worker : workers_) {
      all.insert(all.end(), worker.latencies.begin(), worker.latencies.end());
      result.seconds = std::max(result.seconds, seconds_between(start_, worker.end));
    }
    result.latency = latency_of(std::move(all));
    if (result.seconds > 0) result.throughput = static_cast<double>(result.latency.runs) / result.seconds;
    return result;
  }

 private:
  struct Worker {
    std::vector<double> latencies;
    Clock::time_point end;
    std::exception_ptr failure;
    RunOptions options;
  };
  // When all have warmed up.
  struct Start {
    Bench* bench;
    void operator()() noexcept { bench->start_ = Clock::now(); }
  };

  void work(Worker& worker) {
    try {
      for (int64_t i = 0; i < options_.warmup && !stopped_; ++i) session_.run(inputs_, run_options(worker));
    } catch (...) {
      fail(worker);
    }
    ready_.arrive_and_wait();
    worker.end = start_;
    try {
      measure(worker);
    } catch (...) {
      fail(worker);
    }
  }

  // The outputs' memory of the device is that of the first run.
  const RunOptions& run_options(Worker& worker) {
    if (options_.on_device && worker.options.destinations.empty()) {
      for (const auto& [name, value] : session_.run(inputs_)) {
        if (value.is_tensor()) worker.options.destinations[name] = tenon::on_device(value.tensor(), gpu_of(session_));
      }
    }
    return worker.options;
  }

  void fail(Worker& worker) {
    worker.failure = std::current_exception();
    stopped_ = true;
  }

  void measure(Worker& worker) {
    const bool tells = options_.progress && &worker == &workers_[0];
    Clock::time_point told = start_;
    while (!stopped_) {
      const int64_t index = begun_.fetch_add(1);
      if (index >= most_runs_) break;
      const Clock::time_point begin = Clock::now();
      session_.run(inputs_, worker.options);
      worker.end = Clock::now();
      worker.latencies.push_back(seconds_between(begin, worker.end));
      const double elapsed = seconds_between(start_, worker.end);
      if (elapsed >= most_seconds_) break;
      if (tells && seconds_between(told, worker.end) >= 0.1) {
        told = worker.end;
        options_.progress(
            std::max(elapsed / most_seconds_, static_cast<double>(index + 1) / static_cast<double>(most_runs_)));
      }
    }
  }

  const Session& session_;
  const NamedValues& inputs_;
  const BenchOptions& options_;
  const int64_t most_runs_;
  const double most_seconds_;
  std::vector<Worker> workers_;
  std::barrier<Start> ready_;
  Clock::time_point start_;
  std::atomic<int64_t> begun_ = 0;
  std::atomic<bool> stopped_ = false;
};

}  // namespace

double percentile(std::span<const double> sorted, double fraction) {
  const double position = fraction * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<size_t>(position);
  const size_t above = std::min(below + 1, sorted.size() - 1);
  return std::lerp(sorted[below], sorted[above], position - static_cast<double>(below));
}

Latency latency_of(std::vector<double> seconds) {
  if (seconds.empty()) return {};
  std::ranges::sort(seconds);
  Latency latency;
  latency.runs = static_cast<int64_t>(seconds.size());
  latency.min = seconds.front();
  latency.mean = std::accumulate(seconds.begin(), seconds.end(), 0.0) / static_cast<double>(seconds.size());
  latency.p50 = percentile(seconds, 0.5);
  latency.p90 = percentile(seconds, 0.9);
  latency.p95 = percentile(seconds, 0.95);
  latency.p99 = percentile(seconds, 0.99);
  latency.max = seconds.back();
  return latency;
}

BenchResult bench(const Session& session, const NamedValues& inputs, const BenchOptions& options) {
  if (options.runs <= 0 && !(options.seconds > 0))
    throw Error(ErrorCode::invalid_argument, "a benchmark needs a number of runs or of seconds");
  if (options.concurrency < 1) throw Error(ErrorCode::invalid_argument, "a benchmark needs a thread at least");
  const Clock::time_point start = Clock::now();
  session.run(inputs);
  const double first_run = seconds_between(start, Clock::now());
  NamedValues there;
  if (options.on_device) {
    for (const auto& [name, value] : inputs)
      there[name] = value.is_tensor() ? Value(on_device(value.tensor(), gpu_of(session))) : value;
  }
  Bench bench(session, options.on_device ? there : inputs, options);
  bench.run();
  BenchResult result = bench.result();
  result.first_run = first_run;
  return result;
}

}  // namespace tenon::tools

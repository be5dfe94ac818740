// How much faster threads run a model than one does, beside what multiply-adds in registers gain from them: the most
// that could be expected on this machine, whose threads may share cores and clocks.
//
// usage: bench_scaling MODEL [threads] [rounds]
//
// Both are measured in turns, with one thread and with all; the best of the rounds counts.
#include <fmt/core.h>

#include <algorithm>
#include <cstdlib>

#include "base/thread_pool.h"
#include "kernels/peak/peak.h"
#include "tenon/session.h"
#include "tenon/tools/benchmark.h"
#include "tenon/tools/make_inputs.h"

namespace {

using namespace tenon;

constexpr double seconds_each = 0.3;

class Threads {
 public:
  Threads(const char* model, int count)
      : pool_(count),
        session_(Session::load(model, options_with(count))),
        inputs_(tools::make_inputs(session_, {}).values) {}

  void measure() {
    tools::BenchOptions options;
    options.seconds = seconds_each;
    run_ms_ = std::min(run_ms_, 1e3 * tools::bench(session_, inputs_, options).latency.min);
    gflops_ =
        std::max(gflops_, 1e-9 * kernels::best_rate(seconds_each, [&] { return kernels::multiply_add_all(pool_); }));
  }

  double run_ms() const { return run_ms_; }
  double gflops() const { return gflops_; }

 private:
  static SessionOptions options_with(int threads) {
    SessionOptions options;
    options.threads = threads;
    return options;
  }

  ThreadPool pool_;
  Session session_;
  NamedValues inputs_;
  double run_ms_ = 1e30, gflops_ = 0;
};

}  // namespace

int main(int argc, char** argv) try {
  if (argc < 2) {
    fmt::print(stderr, "usage: {} MODEL [threads] [rounds]\n", argv[0]);
    return 2;
  }
  const int count = argc > 2 ? std::atoi(argv[2]) : default_thread_count(), rounds = argc > 3 ? std::atoi(argv[3]) : 6;
  Threads one(argv[1], 1), all(argv[1], count);
  for (int round = 0; round < rounds; ++round) {
    one.measure();
    all.measure();
  }
  const double model = one.run_ms() / all.run_ms(), peak = all.gflops() / one.gflops();
  fmt::print("threads       model  multiply-adds\n");
  fmt::print("{:7} {:8.2f} ms {:6.0f} GFLOP/s\n", 1, one.run_ms(), one.gflops());
  fmt::print("{:7} {:8.2f} ms {:6.0f} GFLOP/s\n", count, all.run_ms(), all.gflops());
  fmt::print("  times {:8.2f}    {:6.2f}: {:.0f} %\n", model, peak, 100 * model / peak);
  return 0;
} catch (const tenon::Error& error) {
  fmt::print(stderr, "error: {}\n", error.what());
  return 3;
}

#include "cuda/trial.h"

#include <algorithm>
#include <chrono>
#include <limits>

namespace tenon::cuda {
namespace {

constexpr int rounds = 3, runs_each = 4;
constexpr double worth_changing = 0.97;

double seconds_of(GpuQueue& queue, FunctionRef<void(size_t)> run, size_t way) {
  using Clock = std::chrono::steady_clock;
  double least = std::numeric_limits<double>::infinity();
  for (int round = 0; round < rounds; ++round) {
    const Clock::time_point start = Clock::now();
    for (int i = 0; i < runs_each; ++i) run(way);
    queue.wait();
    least = std::min(least, std::chrono::duration<double>(Clock::now() - start).count());
  }
  return least;
}

}  // namespace

size_t fastest(GpuQueue& queue, size_t count, FunctionRef<void(size_t)> run) {
  size_t best = 0;
  if (count < 2) return best;
  double least = std::numeric_limits<double>::infinity();
  for (size_t way = 0; way < count; ++way) {
    run(way);
    queue.wait();
    const double seconds = seconds_of(queue, run, way);
    if (way > 0 && seconds > least * worth_changing) continue;
    least = seconds;
    best = way;
  }
  return best;
}

}  // namespace tenon::cuda

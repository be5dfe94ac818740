#include "cuda/trial.h"

#include <algorithm>
#include <cstdlib>
#include <limits>
#include <optional>
#include <string_view>

#include "base/fail.h"

namespace tenon::cuda {
namespace {

constexpr int rounds = 3, runs_each = 8;
constexpr double worth_changing = 0.97;

// In a graph, as most runs are: else what is short would take as long as the host takes to start it.
int64_t nanoseconds_of(GpuQueue& queue, FunctionRef<void(size_t)> run, size_t way) {
  const auto run_all = [&] {
    for (int i = 0; i < runs_each; ++i) run(way);
  };
  queue.begin_recording();
  try {
    run_all();
  } catch (...) {
    queue.end_recording();
    throw;
  }
  const std::unique_ptr<Recording> recording = queue.end_recording();
  const auto give = [&] { recording ? recording->replay(queue) : run_all(); };
  int64_t least = std::numeric_limits<int64_t>::max();
  for (int round = 0; round < rounds; ++round) least = std::min(least, queue.time(give));
  return least;
}

// What TENON_TRIAL asks for.
std::optional<size_t> way_in_environment(size_t count) {
  const char* set = std::getenv("TENON_TRIAL");
  const std::string_view given = set ? set : "";
  if (given.empty()) return std::nullopt;
  if (given != "first" && given != "last")
    fail(ErrorCode::invalid_argument, "TENON_TRIAL is '{}'; it may be first or last", given);
  return given == "last" ? count - 1 : 0;
}

}  // namespace

size_t fastest(GpuQueue& queue, size_t count, FunctionRef<void(size_t)> run) {
  size_t best = 0;
  if (count < 2) return best;
  if (const auto given = way_in_environment(count)) return *given;
  int64_t least = 0;
  for (size_t way = 0; way < count; ++way) {
    run(way);
    queue.wait();
    const int64_t taken = nanoseconds_of(queue, run, way);
    if (way > 0 && static_cast<double>(taken) > static_cast<double>(least) * worth_changing) continue;
    least = taken;
    best = way;
  }
  return best;
}

std::shared_ptr<const size_t> fastest(GpuQueue& queue, const std::string& key, size_t count,
                                      FunctionRef<void(size_t)> run) {
  auto chosen = std::static_pointer_cast<const size_t>(queue.gpu().choice(key));
  if (chosen) return chosen;
  chosen = std::make_shared<const size_t>(fastest(queue, count, run));
  queue.gpu().set_choice(key, chosen);
  return chosen;
}

}  // namespace tenon::cuda

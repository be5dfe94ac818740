#include "cuda/trial.h"

#include <algorithm>
#include <cstdlib>
#include <limits>
#include <optional>
#include <string_view>

#include "base/fail.h"

namespace tenon::cuda {
namespace {

constexpr int rounds = 3;
constexpr double worth_changing = 0.97;
// How long repeated runs take together so that the clock shows a difference, in nanoseconds, and how many suffice.
constexpr int64_t long_enough = 200'000, most_repeated = 8;
// What takes that many times as long as the best in its first run is not looked at any further.
constexpr int64_t far_behind = 2;

// Of a run. In a graph, as most runs are: else what is short would take as long as the host takes to start it.
int64_t nanoseconds_of(GpuQueue& queue, FunctionRef<void(size_t)> run, size_t way, int64_t repeated, int measured) {
  const auto run_all = [&] {
    for (int64_t i = 0; i < repeated; ++i) run(way);
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
  for (int i = 0; i < measured; ++i) least = std::min(least, queue.time(give));
  return least / repeated;
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
  int64_t least = 0, least_alone = std::numeric_limits<int64_t>::max();
  for (size_t way = 0; way < count; ++way) {
    run(way);
    queue.wait();
    const int64_t alone = std::max<int64_t>(1, nanoseconds_of(queue, run, way, 1, 1));
    if (alone / far_behind > least_alone) continue;
    least_alone = std::min(least_alone, alone);
    const int64_t repeated = std::clamp<int64_t>(long_enough / alone, 1, most_repeated);
    const int64_t taken = nanoseconds_of(queue, run, way, repeated, rounds);
    if (way > 0 && static_cast<double>(taken) > static_cast<double>(least) * worth_changing) continue;
    least = taken;
    best = way;
  }
  return best;
}

bool is_worth_a_trial(Gpu& gpu, const std::string& key, Uses uses) {
  return uses == Uses::in_many_runs || gpu.comes_often(key);
}

size_t untried_way(size_t count) { return way_in_environment(count).value_or(0); }

std::shared_ptr<const size_t> fastest(GpuQueue& queue, const std::string& key, Uses uses, size_t count,
                                      FunctionRef<void(size_t)> run) {
  auto chosen = std::static_pointer_cast<const size_t>(queue.gpu().choice(key));
  if (chosen) return chosen;
  if (!is_worth_a_trial(queue.gpu(), key, uses)) return std::make_shared<const size_t>(untried_way(count));
  chosen = std::make_shared<const size_t>(fastest(queue, count, run));
  queue.gpu().set_choice(key, chosen);
  return chosen;
}

}  // namespace tenon::cuda

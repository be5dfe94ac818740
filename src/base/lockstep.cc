#include "base/lockstep.h"

#include <algorithm>
#include <thread>

#include "base/pause.h"

namespace tenon {
namespace {

// How often a thread looks at the progress of others before it does their work, and gives way to them.
constexpr int patience = 200;
// How long it waits for work that others have begun: so much, and so many times as long as its own work took.
constexpr std::chrono::microseconds longest_wait(100);
constexpr int own_times = 4;

}  // namespace

// How many steps of it have been begun and finished, whether its thread is there, and whether it was too late.
struct alignas(64) Lockstep::Part {
  std::atomic<int64_t> begun{0}, finished{0};
  std::atomic<bool> is_owned{false}, is_late{false};

  bool begin(int64_t step) {
    int64_t expected = step;
    return begun.load(std::memory_order_relaxed) == step && begun.compare_exchange_strong(expected, step + 1);
  }
  bool has_finished(int64_t step) const { return finished.load(std::memory_order_acquire) > step; }
};

Lockstep::Lockstep(int64_t parts, int64_t steps)
    : count_(parts), steps_(steps), parts_(std::make_unique<Part[]>(static_cast<size_t>(parts))) {}

Lockstep::~Lockstep() = default;

void Lockstep::join(int64_t own, FunctionRef<void(int64_t, int64_t)> work) {
  if (count_ == 1) {
    for (int64_t step = 0; step < steps_; ++step) work(step, own);
    return;
  }
  Part& mine = parts_[static_cast<size_t>(own)];
  members_.fetch_add(1);
  // Who comes late finds its part of a step done, but perhaps not those of others.
  const int64_t first = std::max<int64_t>(0, mine.finished.load(std::memory_order_acquire) - 1);
  Clock::duration longest = longest_wait;
  for (int64_t step = first; step < steps_; ++step) {
    if (!mine.is_owned.load(std::memory_order_relaxed)) mine.is_owned.store(true, std::memory_order_relaxed);
    const auto begin = Clock::now();
    begin_and_finish(step, own, work);
    const auto end = Clock::now();
    longest = std::max<Clock::duration>(longest, longest_wait + own_times * (end - begin));
    wait_for_all(step, own, end + longest, work);
    if (failed_.load(std::memory_order_relaxed) || leaves(mine)) return;
  }
}

// Whether its thread was too late, unless it is the last one.
bool Lockstep::leaves(Part& part) {
  if (!part.is_late.load(std::memory_order_relaxed)) return false;
  int64_t members = members_.load();
  while (members > 1 && !members_.compare_exchange_weak(members, members - 1)) continue;
  part.is_owned.store(members == 1, std::memory_order_relaxed);
  part.is_late.store(false, std::memory_order_relaxed);
  return members > 1;
}

// Returns false where someone else has begun.
bool Lockstep::begin_and_finish(int64_t step, int64_t part, FunctionRef<void(int64_t, int64_t)> work) {
  Part& taken = parts_[static_cast<size_t>(part)];
  if (!taken.begin(step)) return false;
  try {
    work(step, part);
  } catch (...) {
    failed_.store(true, std::memory_order_relaxed);
    throw;
  }
  taken.finished.store(step + 1, std::memory_order_release);
  return true;
}

void Lockstep::wait_for_all(int64_t step, int64_t own, Clock::time_point latest,
                            FunctionRef<void(int64_t, int64_t)> work) {
  int looks = 0;
  for (int64_t i = 1; i <= count_;) {
    const int64_t part = (own + i) % count_;
    Part& other = parts_[static_cast<size_t>(part)];
    if (other.has_finished(step)) {
      ++i;
      continue;
    }
    if (failed_.load(std::memory_order_relaxed)) return;
    // A thread that was late once may be away for long, so nobody waits for it until it is back.
    const bool is_owned = other.is_owned.load(std::memory_order_relaxed);
    if ((looks > patience || !is_owned) && begin_and_finish(step, part, work)) {
      other.is_owned.store(false, std::memory_order_relaxed);
      continue;
    }
    if (++looks <= patience) {
      pause_cpu();
      continue;
    }
    if (is_owned && Clock::now() > latest) other.is_late.store(true, std::memory_order_relaxed);
    std::this_thread::yield();
  }
}

}  // namespace tenon

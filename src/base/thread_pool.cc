#include "base/thread_pool.h"

#include <algorithm>
#include <exception>
#include <system_error>

#include "base/environment.h"
#include "base/float_mode.h"
#include "base/pause.h"
#include "base/rounding.h"

namespace tenon {
namespace {

// True while this thread runs a body; a parallel_for inside it runs inline.
thread_local bool inside_body = false;

// Of a loop, at most; a thread takes several at once while many are left, so that all are done at about the same time
// though threads need not be equally fast.
constexpr int64_t ranges_per_thread = 32, takes_of_the_rest = 3;
constexpr int spins_per_clock_read = 32;
// How much longer threads wait awake while a Run is under way: sleeping and waking may take as long as a whole loop.
constexpr int longer_in_runs = 50;

// A loop as one number: its turn, which is another one for each loop of a slot, and how many ranges it has; none once
// it is over. Ranges are at most ranges_per_thread for each thread.
constexpr int range_bits = 24;
uint64_t turn_of(uint64_t loop) { return loop >> range_bits; }
int64_t ranges_of(uint64_t loop) { return static_cast<int64_t>(loop & ((uint64_t{1} << range_bits) - 1)); }
uint64_t loop_of(uint64_t turn, int64_t ranges) { return turn << range_bits | static_cast<uint64_t>(ranges); }

struct Ranges {
  int64_t begin, end;
  int64_t count() const { return end - begin; }
};

// How many ranges of a thread's share have been taken, beside the turn of their loop. So nobody sets them back before a
// loop, and who comes late to a loop that is over finds no range of it, whatever happens in the slot meanwhile.
struct alignas(64) Share {
  std::atomic<uint64_t> taken{0};

  // The next of `count` ranges; none when all are taken.
  Ranges take(uint64_t turn, int64_t count) {
    uint64_t seen = taken.load(std::memory_order_relaxed);
    for (;;) {
      const int64_t begin = turn_of(seen) == turn ? ranges_of(seen) : 0;
      if (turn_of(seen) > turn || begin >= count) return {};
      const int64_t end = begin + std::max<int64_t>(1, (count - begin) / takes_of_the_rest);
      if (taken.compare_exchange_weak(seen, loop_of(turn, end), std::memory_order_relaxed)) return {begin, end};
    }
  }
};

// The ranges that a thread has finished, of all loops.
struct alignas(64) Finished {
  std::atomic<uint64_t> ranges{0};
};

}  // namespace

// A loop. It lives on the caller's stack. Each thread has a share of the ranges, takes those first and then what others
// have left: so it need not wait for others to take theirs, and works near what it worked on in the loop before.
struct alignas(64) ThreadPool::Job {
  FunctionRef<void(int64_t, int64_t)> body;
  const int64_t size;
  const int64_t range;
  const uint64_t mode = float_mode();
  std::atomic<bool> failed{false};
  std::exception_ptr error;

  Job(FunctionRef<void(int64_t, int64_t)> loop_body, int64_t n, int64_t range_length)
      : body(loop_body), size(n), range(range_length) {}

  int64_t ranges() const { return divide_up(size, range); }
};

// Where workers find a loop without a lock. A worker may touch the job while it has taken a range and not yet said that
// it is finished; the caller waits until all ranges are. Each thread says so in a place of its own, which others only
// read. Callers who find no free slot work alone.
struct alignas(64) ThreadPool::Slot {
  static constexpr int count = 32;

  std::atomic<uint64_t> loop{0};
  Job* job = nullptr;
  std::atomic<bool> is_taken{false};
  std::atomic<bool> caller_sleeps{false};
  uint64_t ranges_before = 0;            // of all loops that are over
  std::unique_ptr<Share[]> shares;       // one for each thread, that of the caller first
  std::unique_ptr<Finished[]> finished;  // the same

  uint64_t finished_by(size_t threads) const {
    uint64_t sum = 0;
    for (size_t i = 0; i < threads; ++i) sum += finished[i].ranges.load();
    return sum;
  }
};

struct ThreadPool::Worker {
  size_t number;  // from 1 on
  // The loop that it left last: that has no more work.
  const Slot* last = nullptr;
  uint64_t last_loop = 0;
};

// Waits without sleeping until `done`, or until it has taken too long; returns whether it was done.
template <class Done>
bool ThreadPool::wait_awake(Done done) const {
  if (spin_time_.count() <= 0) return done();
  const auto begin = std::chrono::steady_clock::now();
  for (;;) {
    for (int i = 0; i < spins_per_clock_read; ++i) {
      if (done()) return true;
      pause_cpu();
    }
    const auto waited = std::chrono::steady_clock::now() - begin;
    if (waited < spin_time_) continue;
    if (runs_.load(std::memory_order_relaxed) == 0 || waited >= longer_in_runs * spin_time_) return false;
    std::this_thread::yield();
  }
}

int default_spin_microseconds() { return number_in_environment("TENON_SPIN", 0).value_or(20); }

ThreadPool::ThreadPool(int threads, int spin_microseconds)
    : spin_time_(spin_microseconds), slots_(std::make_unique<Slot[]>(Slot::count)) {
  const auto count = static_cast<size_t>(threads > 0 ? threads : default_thread_count());
  for (size_t i = 0; count > 1 && i < Slot::count; ++i) {
    slots_[i].shares = std::make_unique<Share[]>(count);
    slots_[i].finished = std::make_unique<Finished[]>(count);
  }
  threads_.reserve(count - 1);
  try {
    for (size_t number = 1; number < count; ++number) {
      threads_.emplace_back([this, number] {
        Worker self{number};
        work(self);
      });
    }
  } catch (const std::system_error&) {
    // Fewer threads than asked for still give the same results.
  }
}

ThreadPool::~ThreadPool() {
  stop_ = true;
  generation_.fetch_add(1);
  wake(size());
  for (std::thread& thread : threads_) thread.join();
}

std::shared_ptr<ThreadPool> ThreadPool::shared() {
  static const std::shared_ptr<ThreadPool> pool = std::make_shared<ThreadPool>(0);
  return pool;
}

void ThreadPool::parallel_for(int64_t n, int64_t grain, FunctionRef<void(int64_t, int64_t)> body) {
  if (n <= 0) return;
  // Where there are as many runs as threads, each has its own: sharing loops would make them wait for each other.
  const bool is_crowded = runs_.load(std::memory_order_relaxed) >= size();
  if (n <= grain || threads_.empty() || inside_body || is_crowded) {
    body(0, n);
    return;
  }
  const int64_t range_count = ranges_per_thread * size();
  const int64_t range = std::max({grain, divide_up(n, range_count), int64_t{1}});
  Job job(body, n, range);
  Slot* slot = open(job);
  if (!slot) return body(0, n);
  take_ranges(*slot, slot->loop.load(std::memory_order_relaxed), 0);
  close(*slot);
  if (job.error) std::rethrow_exception(job.error);
}

// Lets workers in.
ThreadPool::Slot* ThreadPool::open(Job& job) {
  for (int i = 0; i < Slot::count; ++i) {
    Slot& slot = slots_[static_cast<size_t>(i)];
    if (slot.is_taken.load(std::memory_order_relaxed) || slot.is_taken.exchange(true)) continue;
    slot.job = &job;
    const uint64_t turn = turn_of(slot.loop.load(std::memory_order_relaxed)) + 1;
    slot.loop.store(loop_of(turn, job.ranges()), std::memory_order_release);
    int used = slots_used_.load();
    while (used <= i && !slots_used_.compare_exchange_weak(used, i + 1)) continue;
    generation_.fetch_add(1);
    wake(job.ranges() - 1);
    return &slot;
  }
  return nullptr;
}

// Waits until all ranges are finished.
void ThreadPool::close(Slot& slot) {
  const uint64_t loop = slot.loop.load(std::memory_order_relaxed);
  slot.ranges_before += static_cast<uint64_t>(ranges_of(loop));
  const auto all_finished = [&] { return slot.finished_by(threads_.size() + 1) == slot.ranges_before; };
  if (!wait_awake(all_finished)) {
    slot.caller_sleeps.store(true);
    std::unique_lock lock(mutex_);
    done_.wait(lock, all_finished);
    slot.caller_sleeps.store(false);
  }
  slot.loop.store(loop_of(turn_of(loop), 0), std::memory_order_relaxed);
  slot.is_taken.store(false, std::memory_order_release);
}

// Workers that sleep, as many as there are. They count themselves before they look for the last time, and this looks
// for them after the change that they are to see, so none sleeps through it.
void ThreadPool::wake(int64_t count) {
  int64_t sleeping = std::min<int64_t>(sleeping_.load(), count);
  if (sleeping == 0) return;
  { std::lock_guard lock(mutex_); }
  for (; sleeping > 0; --sleeping) wake_.notify_one();
}

void ThreadPool::take_ranges(Slot& slot, uint64_t loop, size_t own_number) {
  const int64_t ranges = ranges_of(loop), shares = std::min<int64_t>(ranges, size());
  std::atomic<uint64_t>& finished = slot.finished[own_number].ranges;
  for (int64_t i = 0; i < shares; ++i) {
    const int64_t share = (static_cast<int64_t>(own_number) + i) % shares;
    const int64_t first = share * ranges / shares, count = (share + 1) * ranges / shares - first;
    Share& from = slot.shares[static_cast<size_t>(share)];
    int64_t taken = 0;
    for (Ranges next; (next = from.take(turn_of(loop), count)).count() > 0; taken += next.count())
      run_ranges(*slot.job, first + next.begin, first + next.end);
    if (taken > 0) finished.store(finished.load(std::memory_order_relaxed) + static_cast<uint64_t>(taken));
  }
}

// Once a range has failed, the others are not run.
void ThreadPool::run_ranges(Job& job, int64_t begin, int64_t end) {
  if (job.failed.load(std::memory_order_relaxed)) return;
  const ScopedFloatMode mode(job.mode);
  inside_body = true;
  try {
    job.body(begin * job.range, std::min(end * job.range, job.size));
  } catch (...) {
    job.failed.store(true, std::memory_order_relaxed);
    std::lock_guard lock(mutex_);
    if (!job.error) job.error = std::current_exception();
  }
  inside_body = false;
}

// Works on a loop that it does not know yet; says whether there was one. Workers spread over the loops.
bool ThreadPool::help(Worker& self) {
  struct Found {
    Slot* slot;
    uint64_t loop;
  };
  Found found[Slot::count];
  size_t count = 0;
  for (int i = 0; i < slots_used_.load(std::memory_order_relaxed); ++i) {
    Slot& slot = slots_[static_cast<size_t>(i)];
    const uint64_t loop = slot.loop.load(std::memory_order_acquire);
    if (ranges_of(loop) > 0 && !(self.last == &slot && self.last_loop == loop)) found[count++] = {&slot, loop};
  }
  if (count == 0) return false;
  const auto [slot, loop] = found[self.number % count];
  take_ranges(*slot, loop, self.number);
  self.last = slot;
  self.last_loop = loop;
  if (slot->caller_sleeps.load()) {
    { std::lock_guard lock(mutex_); }
    done_.notify_all();
  }
  return true;
}

void ThreadPool::work(Worker& self) {
  for (;;) {
    const uint64_t seen = generation_.load();  // before stop_, which is set before it changes for the last time
    if (stop_) return;
    if (help(self)) continue;
    const auto changed = [this, seen] { return generation_.load() != seen; };
    if (wait_awake(changed)) continue;
    std::unique_lock lock(mutex_);
    sleeping_.fetch_add(1);
    wake_.wait(lock, changed);
    sleeping_.fetch_sub(1);
  }
}

}  // namespace tenon

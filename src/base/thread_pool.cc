#include "base/thread_pool.h"

#include <algorithm>
#include <exception>
#include <limits>
#include <system_error>

#include "base/environment.h"
#include "base/float_mode.h"
#include "base/rounding.h"

namespace tenon {
namespace {

// True while this thread runs a body; a parallel_for inside it runs inline.
thread_local bool inside_body = false;

// Of a worker, from 1 on; 0 in threads of others.
thread_local int own_number = 0;

constexpr int64_t ranges_per_thread = 8;
constexpr int spins_per_clock_read = 32;
// How much longer threads wait awake while a Run is under way: sleeping and waking may take as long as a whole loop.
constexpr int longer_in_runs = 50;

void pause_cpu() {
#if defined(__aarch64__)
  asm volatile("isb" ::: "memory");
#elif defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

}  // namespace

// How many of a share of a loop's ranges have been taken.
struct alignas(64) Taken {
  std::atomic<int64_t> count{0};
};

// A loop. It lives on the caller's stack. Each thread has a share of the ranges, takes those first and then what others
// have left: so it need not wait for others to take theirs, and works near what it worked on in the loop before.
struct ThreadPool::Job {
  FunctionRef<void(int64_t, int64_t)> body;
  const int64_t size;
  const int64_t range;
  const int64_t ranges = divide_up(size, range);
  int64_t shares = 1;
  Taken* taken = &taken_alone;  // of each share
  Taken taken_alone;
  const uint64_t mode = float_mode();
  std::exception_ptr error;

  Job(FunctionRef<void(int64_t, int64_t)> loop_body, int64_t n, int64_t range_length)
      : body(loop_body), size(n), range(range_length) {}

  int64_t first_of(int64_t share) const { return share * ranges / shares; }
};

// Where workers find a loop without a lock. A worker may touch the job once it has said that it is here and then seen
// that the slot is open; the caller closes the slot and then waits for the workers that are here to leave: so each
// writes where no other does. Callers who find no free slot work alone.
struct alignas(64) ThreadPool::Slot {
  static constexpr int count = 32;
  static constexpr int all = std::numeric_limits<int>::max();

  std::atomic<bool> is_taken{false};
  std::atomic<bool> caller_sleeps{false};
  std::atomic<int> wanted{0};     // how many more workers
  std::atomic<uint64_t> turn{0};  // odd while it is open
  Job* job = nullptr;
  std::unique_ptr<Taken[]> taken;  // for as many shares as there are threads

  static bool is_open(uint64_t turn) { return turn % 2 == 1; }
  bool wants_help() const {
    return is_open(turn.load(std::memory_order_relaxed)) && wanted.load(std::memory_order_relaxed) > 0;
  }
  bool admit() { return wanted.load(std::memory_order_relaxed) == all || wanted.fetch_sub(1) > 0; }
};

struct alignas(64) ThreadPool::Worker {
  std::atomic<Slot*> at{nullptr};
  // The loop that it left last: that has no more work.
  const Slot* last = nullptr;
  uint64_t last_turn = 0;

  bool knows(const Slot& slot) const { return last == &slot && last_turn == slot.turn.load(std::memory_order_relaxed); }
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
  const int count = threads > 0 ? threads : default_thread_count();
  workers_ = std::make_unique<Worker[]>(static_cast<size_t>(count));
  for (int i = 0; i < Slot::count; ++i)
    slots_[static_cast<size_t>(i)].taken = std::make_unique<Taken[]>(static_cast<size_t>(count));
  threads_.reserve(static_cast<size_t>(count - 1));
  try {
    for (int i = 1; i < count; ++i) {
      threads_.emplace_back([this, i] {
        own_number = i;
        work(workers_[static_cast<size_t>(i - 1)]);
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
  Slot* slot = open(job, job.ranges - 1);
  run_ranges(job);
  if (slot) close(*slot);
  if (job.error) std::rethrow_exception(job.error);
}

// Lets workers in.
ThreadPool::Slot* ThreadPool::open(Job& job, int64_t helpers_wanted) {
  const int64_t wanted = std::min<int64_t>(helpers_wanted, size() - 1);
  for (int i = 0; i < Slot::count; ++i) {
    Slot& slot = slots_[static_cast<size_t>(i)];
    if (slot.is_taken.load(std::memory_order_relaxed) || slot.is_taken.exchange(true)) continue;
    slot.job = &job;
    job.shares = wanted + 1;
    job.taken = slot.taken.get();
    for (int64_t share = 0; share < job.shares; ++share) job.taken[share].count.store(0, std::memory_order_relaxed);
    slot.wanted.store(wanted == size() - 1 ? Slot::all : static_cast<int>(wanted), std::memory_order_relaxed);
    slot.turn.store(slot.turn.load(std::memory_order_relaxed) + 1, std::memory_order_release);
    generation_.fetch_add(1);
    wake(wanted);
    return &slot;
  }
  return nullptr;
}

// Lets no more in, and waits for those that are.
void ThreadPool::close(Slot& slot) {
  slot.turn.store(slot.turn.load(std::memory_order_relaxed) + 1);
  const auto all_left = [&, i = size_t{0}]() mutable {
    while (i < threads_.size() && workers_[i].at.load() != &slot) ++i;
    return i == threads_.size();
  };
  if (!wait_awake(all_left)) {
    slot.caller_sleeps.store(true);
    std::unique_lock lock(mutex_);
    left_.wait(lock, all_left);
    slot.caller_sleeps.store(false);
  }
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

void ThreadPool::run_ranges(Job& job) {
  const ScopedFloatMode mode(job.mode);
  inside_body = true;
  for (int64_t i = 0; i < job.shares; ++i) {
    const int64_t share = (own_number + i) % job.shares, first = job.first_of(share);
    const int64_t count = job.first_of(share + 1) - first;
    std::atomic<int64_t>& taken = job.taken[share].count;
    while (taken.load(std::memory_order_relaxed) < count) {
      const int64_t index = taken.fetch_add(1, std::memory_order_relaxed);
      if (index >= count) break;
      const int64_t begin = (first + index) * job.range;
      try {
        job.body(begin, std::min(begin + job.range, job.size));
      } catch (...) {
        for (int64_t other = 0; other < job.shares; ++other)
          job.taken[other].count.store(job.ranges, std::memory_order_relaxed);
        std::lock_guard lock(mutex_);
        if (!job.error) job.error = std::current_exception();
      }
    }
  }
  inside_body = false;
}

// Works on a loop that it does not know yet; says whether there was one. Workers spread over the loops.
bool ThreadPool::help(Worker& self) {
  Slot* open[Slot::count];
  int count = 0;
  for (int i = 0; i < Slot::count; ++i) {
    Slot& slot = slots_[static_cast<size_t>(i)];
    if (slot.wants_help() && !self.knows(slot)) open[count++] = &slot;
  }
  if (count == 0) return false;
  Slot& slot = *open[own_number % count];
  self.at.store(&slot);
  const uint64_t turn = slot.turn.load();
  if (Slot::is_open(turn) && slot.admit()) {
    run_ranges(*slot.job);
    self.last = &slot;
    self.last_turn = turn;
  }
  self.at.store(nullptr);
  if (slot.caller_sleeps.load()) {
    { std::lock_guard lock(mutex_); }
    left_.notify_all();
  }
  return true;
}

void ThreadPool::work(Worker& self) {
  while (!stop_) {
    const uint64_t seen = generation_.load();
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

#include "base/thread_pool.h"

#include <algorithm>
#include <exception>
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

constexpr int64_t ranges_per_thread = 4;
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

// Where workers find a loop without a lock. A worker may touch the job only while it counts among the users; the caller
// closes the slot and waits for those to leave. Callers who find no free slot work alone.
struct alignas(64) ThreadPool::Slot {
  static constexpr int count = 32;
  // The state: flags, how many more workers are wanted, and how many are in.
  static constexpr uint32_t is_taken = 1u << 31, is_open = 1u << 30, caller_sleeps = 1u << 29;
  static constexpr uint32_t wanted_one = 1u << 14, most_wanted = (1u << 14) - 1, user_mask = (1u << 14) - 1;

  std::atomic<uint32_t> state{0};
  Job* job = nullptr;
  std::unique_ptr<Taken[]> taken;  // for as many shares as there are threads

  static int64_t wanted(uint32_t state) { return state / wanted_one % (most_wanted + 1); }

  bool join() {
    uint32_t now = state.load(std::memory_order_relaxed);
    while ((now & is_open) && wanted(now) > 0) {
      if (state.compare_exchange_weak(now, now - wanted_one + 1, std::memory_order_acquire, std::memory_order_relaxed))
        return true;
    }
    return false;
  }
  void leave() {
    const uint32_t before = state.fetch_sub(1, std::memory_order_release);
    if ((before & user_mask) == 1 && (before & caller_sleeps)) state.notify_all();
  }
  bool has_users() const { return state.load(std::memory_order_acquire) & user_mask; }
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
  for (int i = 0; i < Slot::count; ++i)
    slots_[static_cast<size_t>(i)].taken = std::make_unique<Taken[]>(static_cast<size_t>(count));
  workers_.reserve(static_cast<size_t>(count - 1));
  try {
    for (int i = 1; i < count; ++i) {
      workers_.emplace_back([this, i] {
        own_number = i;
        work();
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
  for (std::thread& worker : workers_) worker.join();
}

std::shared_ptr<ThreadPool> ThreadPool::shared() {
  static const std::shared_ptr<ThreadPool> pool = std::make_shared<ThreadPool>(0);
  return pool;
}

void ThreadPool::parallel_for(int64_t n, int64_t grain, FunctionRef<void(int64_t, int64_t)> body) {
  if (n <= 0) return;
  if (n <= grain || workers_.empty() || inside_body) {
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
  const int64_t wanted = std::min<int64_t>({helpers_wanted, size() - 1, Slot::most_wanted});
  for (int i = 0; i < Slot::count; ++i) {
    Slot& slot = slots_[static_cast<size_t>(i)];
    uint32_t free = 0;
    if (slot.state.load(std::memory_order_relaxed) != 0 ||
        !slot.state.compare_exchange_strong(free, Slot::is_taken, std::memory_order_acquire))
      continue;
    slot.job = &job;
    job.shares = wanted + 1;
    job.taken = slot.taken.get();
    for (int64_t share = 0; share < job.shares; ++share) job.taken[share].count.store(0, std::memory_order_relaxed);
    slot.state.store(Slot::is_taken | Slot::is_open | static_cast<uint32_t>(wanted) * Slot::wanted_one,
                     std::memory_order_release);
    generation_.fetch_add(1);
    wake(wanted);
    return &slot;
  }
  return nullptr;
}

// Lets no more in, and waits for those that are.
void ThreadPool::close(Slot& slot) {
  slot.state.fetch_and(Slot::is_taken | Slot::user_mask, std::memory_order_relaxed);
  if (!wait_awake([&] { return !slot.has_users(); })) {
    uint32_t now = slot.state.fetch_or(Slot::caller_sleeps, std::memory_order_acquire) | Slot::caller_sleeps;
    while (now & Slot::user_mask) {
      slot.state.wait(now, std::memory_order_acquire);
      now = slot.state.load(std::memory_order_acquire);
    }
  }
  slot.state.store(0, std::memory_order_release);
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

// Works on the loop that has the fewest workers; says whether there was one.
bool ThreadPool::help() {
  Slot* best = nullptr;
  uint32_t fewest = ~0u;
  for (int i = 0; i < Slot::count; ++i) {
    Slot& slot = slots_[static_cast<size_t>(i)];
    const uint32_t state = slot.state.load(std::memory_order_relaxed);
    if (!(state & Slot::is_open) || Slot::wanted(state) == 0 || (state & Slot::user_mask) >= fewest) continue;
    best = &slot;
    fewest = state & Slot::user_mask;
  }
  if (!best) return false;
  if (best->join()) {
    run_ranges(*best->job);
    best->leave();
  }
  return true;
}

void ThreadPool::work() {
  while (!stop_) {
    const uint64_t seen = generation_.load();
    if (help()) continue;
    const auto changed = [this, seen] { return generation_.load() != seen; };
    if (wait_awake(changed)) continue;
    std::unique_lock lock(mutex_);
    sleeping_.fetch_add(1);
    wake_.wait(lock, changed);
    sleeping_.fetch_sub(1);
  }
}

}  // namespace tenon

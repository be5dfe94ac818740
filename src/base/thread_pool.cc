#include "base/thread_pool.h"

#include <algorithm>
#include <exception>
#include <system_error>

#include "base/environment.h"
#include "base/float_mode.h"

namespace tenon {
namespace {

// True while this thread runs a body; a parallel_for inside it runs inline.
thread_local bool inside_body = false;

constexpr int64_t ranges_per_thread = 4;
constexpr int spins_per_clock_read = 32;

void pause_cpu() {
#if defined(__aarch64__)
  asm volatile("isb" ::: "memory");
#elif defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

// Spins until `done` or until `time` is over; returns whether it was done.
template <class Done>
bool spin_until(Done done, std::chrono::microseconds time) {
  if (time.count() <= 0) return done();
  const auto end = std::chrono::steady_clock::now() + time;
  do {
    for (int i = 0; i < spins_per_clock_read; ++i) {
      if (done()) return true;
      pause_cpu();
    }
  } while (std::chrono::steady_clock::now() < end);
  return false;
}

}  // namespace

// Lives on the caller's stack; a worker touches it only between joining and leaving, both under the pool's mutex.
struct ThreadPool::Job {
  FunctionRef<void(int64_t, int64_t)> body;
  const int64_t size;
  const int64_t range;
  const uint64_t mode = float_mode();
  std::atomic<int64_t> next{0};
  std::atomic<int> users{0};
  bool caller_sleeps = false;
  std::exception_ptr error;

  Job(FunctionRef<void(int64_t, int64_t)> loop_body, int64_t n, int64_t range_length)
      : body(loop_body), size(n), range(range_length) {}
};

int default_spin_microseconds() { return number_in_environment("TENON_SPIN", 0).value_or(20); }

ThreadPool::ThreadPool(int threads, int spin_microseconds) : spin_time_(spin_microseconds) {
  const int count = threads > 0 ? threads : default_thread_count();
  workers_.reserve(static_cast<size_t>(count - 1));
  try {
    for (int i = 1; i < count; ++i) workers_.emplace_back([this] { work(); });
  } catch (const std::system_error&) {
    // Fewer threads than asked for still give the same results.
  }
}

ThreadPool::~ThreadPool() {
  {
    std::lock_guard lock(mutex_);
    stop_ = true;
    generation_.fetch_add(1, std::memory_order_release);
  }
  wake_.notify_all();
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
  const int64_t range = std::max({grain, (n - 1) / range_count + 1, int64_t{1}});
  Job job(body, n, range);
  add(job, (n - 1) / range);
  run_ranges(job);
  finish(job);
  if (job.error) std::rethrow_exception(job.error);
}

void ThreadPool::add(Job& job, int64_t helpers_wanted) {
  int to_wake;
  {
    std::lock_guard lock(mutex_);
    jobs_.push_back(&job);
    generation_.fetch_add(1, std::memory_order_release);
    to_wake = static_cast<int>(std::min<int64_t>(sleeping_, helpers_wanted));
  }
  for (int i = 0; i < to_wake; ++i) wake_.notify_one();
}

// Closes the job to new workers and waits for those that joined.
void ThreadPool::finish(Job& job) {
  {
    std::lock_guard lock(mutex_);
    jobs_.erase(std::find(jobs_.begin(), jobs_.end(), &job));
  }
  const auto left = [&job] { return job.users.load(std::memory_order_acquire) == 0; };
  if (spin_until(left, spin_time_)) return;
  std::unique_lock lock(mutex_);
  job.caller_sleeps = true;
  job_done_.wait(lock, left);
}

void ThreadPool::run_ranges(Job& job) {
  const ScopedFloatMode mode(job.mode);
  inside_body = true;
  for (;;) {
    const int64_t begin = job.next.fetch_add(job.range, std::memory_order_relaxed);
    if (begin >= job.size) break;
    try {
      job.body(begin, std::min(begin + job.range, job.size));
    } catch (...) {
      job.next.store(job.size, std::memory_order_relaxed);
      std::lock_guard lock(mutex_);
      if (!job.error) job.error = std::current_exception();
    }
  }
  inside_body = false;
}

// The job with work left that has the fewest workers. The mutex must be held.
ThreadPool::Job* ThreadPool::find_job() const {
  Job* best = nullptr;
  for (Job* job : jobs_) {
    if (job->next.load(std::memory_order_relaxed) >= job->size) continue;
    if (!best || job->users.load(std::memory_order_relaxed) < best->users.load(std::memory_order_relaxed)) best = job;
  }
  return best;
}

void ThreadPool::work() {
  std::unique_lock lock(mutex_);
  while (!stop_) {
    if (Job* job = find_job()) {
      job->users.fetch_add(1, std::memory_order_relaxed);
      lock.unlock();
      run_ranges(*job);
      lock.lock();
      // The caller may return, and the job vanish, as soon as the count reaches zero.
      const bool caller_sleeps = job->caller_sleeps;
      if (job->users.fetch_sub(1, std::memory_order_release) == 1 && caller_sleeps) job_done_.notify_all();
      continue;
    }
    const uint64_t seen = generation_.load(std::memory_order_relaxed);
    const auto changed = [this, seen] { return generation_.load(std::memory_order_acquire) != seen; };
    lock.unlock();
    const bool found = spin_until(changed, spin_time_);
    lock.lock();
    if (found) continue;
    ++sleeping_;
    wake_.wait(lock, changed);
    --sleeping_;
  }
}

}  // namespace tenon

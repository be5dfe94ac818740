// The threads that kernels run on.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "base/function_ref.h"

namespace tenon {

// CPUs this process may use: the smaller of the scheduler affinity and the cgroup's CPU quota (rounded up), at least 1.
// The environment variable TENON_THREADS, a number above 0, replaces it.
int default_thread_count();

// Microseconds that threads wait for work before they sleep: 20, or what the environment variable TENON_SPIN says.
int default_spin_microseconds();

// Splits loops over threads. Any number of threads may call parallel_for at once: they share the workers, and each
// caller works on its own loop, so it finishes even when every worker is busy elsewhere.
// Workers wait for work by spinning for some microseconds, then by sleeping; while a Run is under way they first wait
// longer, giving way to other threads of the system. They compute in the caller's float mode.
class ThreadPool {
 public:
  // `threads` counts the caller: a pool of 1 has no workers. 0 or less means default_thread_count().
  // Where the system refuses to start more threads, the pool is smaller than asked for.
  explicit ThreadPool(int threads, int spin_microseconds = default_spin_microseconds());
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int size() const { return static_cast<int>(threads_.size()) + 1; }

  // Calls body(begin, end) on disjoint ranges that cover [0, n), each at least `grain` long except the last.
  // Returns when all are done. When a range throws, ranges not yet started are dropped and the first exception is
  // rethrown here. Runs as one range in the caller when n <= grain, when called from inside another body, and while
  // there are as many Runs as threads.
  void parallel_for(int64_t n, int64_t grain, FunctionRef<void(int64_t, int64_t)> body);

  // While one exists, loops are expected to follow each other soon.
  class Run {
   public:
    explicit Run(ThreadPool& pool) : pool_(pool) { pool_.runs_.fetch_add(1, std::memory_order_relaxed); }
    ~Run() { pool_.runs_.fetch_sub(1, std::memory_order_relaxed); }
    Run(const Run&) = delete;
    Run& operator=(const Run&) = delete;

   private:
    ThreadPool& pool_;
  };

  // The pool of this process, made on first use with default_thread_count() threads.
  static std::shared_ptr<ThreadPool> shared();

 private:
  struct Job;
  struct Slot;
  struct Worker;

  void work(Worker& self);
  bool help(Worker& self);
  void take_ranges(Slot& slot, uint64_t loop, size_t own_number);
  void run_ranges(Job& job, int64_t begin, int64_t end);
  Slot* open(Job& job);
  void close(Slot& slot);
  void wake(int64_t count);
  template <class Done>
  bool wait_awake(Done done) const;

  const std::chrono::microseconds spin_time_;
  const std::unique_ptr<Slot[]> slots_;  // where workers find loops
  std::vector<std::thread> threads_;
  std::atomic<int> sleeping_{0};
  std::atomic<int> runs_{0};
  std::atomic<bool> stop_{false};
  std::mutex mutex_;              // guards falling asleep, and every Job's error
  std::condition_variable wake_;  // workers sleep here
  std::condition_variable done_;  // callers sleep here until their loop is done
  // What workers watch, apart from what others write.
  alignas(64) std::atomic<uint64_t> generation_{0};  // changes with every loop
  std::atomic<int> slots_used_{0};                   // the first so many, at some time
};

}  // namespace tenon

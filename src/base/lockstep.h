// Loops whose steps need all of the step before.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>

#include "base/function_ref.h"

namespace tenon {

// Threads that go through such a loop together, each with a part of every step that is its own: what a part reads stays
// in that thread's caches, and one look at the others' progress is all that a step costs. Parts whose thread is not
// there, or late, are computed by the others; so any number of threads from one on will do. A thread that keeps the
// others waiting for long, as it has to share its CPU, leaves them the rest.
class Lockstep {
 public:
  Lockstep(int64_t parts, int64_t steps);
  ~Lockstep();
  Lockstep(const Lockstep&) = delete;
  Lockstep& operator=(const Lockstep&) = delete;

  // Calls work(step, part) until all steps are done or, where others are there, until this thread is too late. Each
  // thread calls it once, with a part of its own; when all have returned, all steps are done.
  // When work throws, that is rethrown here, and the other threads return early.
  void join(int64_t own, FunctionRef<void(int64_t, int64_t)> work);

 private:
  using Clock = std::chrono::steady_clock;
  struct Part;

  bool begin_and_finish(int64_t step, int64_t part, FunctionRef<void(int64_t, int64_t)> work);
  void wait_for_all(int64_t step, int64_t own, Clock::time_point latest, FunctionRef<void(int64_t, int64_t)> work);
  bool leaves(Part& part);

  const int64_t count_, steps_;
  const std::unique_ptr<Part[]> parts_;
  std::atomic<int64_t> members_{0};
  std::atomic<bool> failed_{false};
};

}  // namespace tenon

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>

#include "session/frame.h"

namespace tenon {
namespace {

// What failed among items that run side by side: the first one in their order, whichever came first in time.
class FirstFailure {
 public:
  // The exception that is being handled.
  void note(size_t index) {
    std::lock_guard lock(mutex_);
    if (error_ && index_ < index) return;
    index_ = index;
    error_ = std::current_exception();
  }
  size_t index() const { return index_; }
  const std::exception_ptr& error() const { return error_; }

 private:
  std::mutex mutex_;
  size_t index_ = 0;
  std::exception_ptr error_;
};

}  // namespace

// Values come and go on the calling thread, before and after: the others only read what lies where.
void Frame::run_side_by_side(const RunState& state, size_t first, size_t last, std::span<const Tensor> destinations) {
  FirstFailure failure;
  for (size_t i = first; i < last && !failure.error(); ++i) {
    try {
      state.throw_if_cancelled();
      for (int block : plan_->items[i].buffers) allocate(state, block, destinations);
    } catch (...) {
      failure.note(i);
    }
  }
  std::vector<StepProfile> profiles(state.profile ? last - first : 0);
  // Handed out in order: when one fails, those before it have at least begun.
  std::atomic<size_t> next{failure.error() ? last : first};
  const auto lanes =
      state.watcher ? 1 : static_cast<int64_t>(std::min(static_cast<size_t>(state.branch_threads), last - first));
  state.threads.parallel_for(lanes, 1, [&](int64_t lane, int64_t) {
    for (size_t i; (i = next.fetch_add(1, std::memory_order_relaxed)) < last;) {
      Call& call = calls_[i];
      try {
        state.throw_if_cancelled();
        const auto run = [&] { call.kernel->run(call.run); };
        const auto run_and_watch = [&] { state.watcher ? run_watched(*state.watcher, i, run) : run(); };
        if (state.profile) {
          StepProfile& profile = profiles[i - first];
          profile = measure(i, run_and_watch);
          profile.thread = static_cast<int>(lane) + 1;
        } else {
          run_and_watch();
        }
      } catch (...) {
        failure.note(i);
        next.store(last, std::memory_order_relaxed);
      }
    }
  });
  if (state.profile) {
    std::erase_if(profiles, [](const StepProfile& profile) { return profile.thread == 0; });
    std::ranges::stable_sort(profiles, {}, [](const StepProfile& p) { return p.start_ns + p.duration_ns; });
    std::ranges::move(profiles, std::back_inserter(*state.profile));
  }
  if (failure.error()) {
    try {
      std::rethrow_exception(failure.error());
    } catch (...) {
      rethrow_at(failure.index());
    }
  }
  for (size_t i = first; i < last; ++i) {
    for (int slot : plan_->items[i].drops) at(values_, slot) = Value();
  }
}

}  // namespace tenon

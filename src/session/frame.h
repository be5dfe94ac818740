#pragma once

#include <memory>
#include <vector>

#include "session/plan.h"

namespace tenon {

// The memory and values of one run at a time, arranged for a plan. Kept between runs: with the same plan, a run only
// executes its steps.
class Frame {
 public:
  Frame(const Program& program, const RunState& state);
  Frame(const Frame&) = delete;
  Frame& operator=(const Frame&) = delete;

  const std::shared_ptr<const Plan>& plan() const { return plan_; }
  // Arranges everything for `plan`.
  void bind(std::shared_ptr<const Plan> plan);

  // `arguments` as the plan was made for. `destinations` (may be empty): memory of the caller per output. Afterwards
  // the outputs can be taken.
  void run(const RunState& state, std::span<const Value* const> arguments, std::span<const Tensor> destinations);
  // The value of the program's output i; undefined if the plan does not compute it.
  Value output(size_t i) const;
  // Lets go of everything that belongs to the run.
  void clear();

  const Value& value(int slot) const { return values_[static_cast<size_t>(slot)]; }

 private:
  struct Call {
    const Kernel* kernel;
    KernelRun run;
    bool is_plain;  // nothing to do but to run the kernel
  };

  void set_arguments(std::span<const Value* const> arguments);
  void allocate(const RunState& state, int block, std::span<const Tensor> destinations);
  void run_item(const RunState& state, size_t index, std::span<const Tensor> destinations);
  void run_measured(const RunState& state, size_t index, std::span<const Tensor> destinations);
  void run_kernel(const RunState& state, size_t index, std::span<const Tensor> destinations);
  // Infers again, now that the contents are there, to find what is wrong with them.
  void check(const Step& step) const;
  std::shared_ptr<void> allocate_arena() const;
  void run_alone_at(const RunState& state, const Step& step);

  const Program& program_;
  ThreadPool& threads_;
  Allocator& allocator_;
  std::shared_ptr<const Plan> plan_;
  std::shared_ptr<void> arena_;
  int64_t arena_bytes_ = 0;
  std::vector<Value> values_;  // by slot
  std::vector<const Value*> inputs_;
  std::vector<KernelRun::Output> outputs_;
  std::vector<Call> calls_;
};

}  // namespace tenon

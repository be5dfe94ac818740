#pragma once

#include <array>
#include <memory>
#include <vector>

#include "base/function_ref.h"
#include "base/index.h"
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
  // The plan, while the frame is not in use, became another one by this change.
  void take(const PlanChange& change);

  // Whether the plan holds with this argument too: it has the type and shape of the one that the plan was made for, and
  // its content decided nothing.
  bool fits(size_t i, const Value& value) const;
  // Whether the plan reads more of the argument than its type and shape. Then it must be set.
  bool reads_argument(size_t i) const { return at(plan_->slots, argument_slot(i)).block >= 0; }
  // One argument per graph input and per capture, as the plan was made for. They stay for later runs.
  void set_argument(size_t i, Value&& value) { at(values_, argument_slot(i)) = std::move(value); }
  Value take_argument(size_t i);
  // `destinations` (may be empty): memory of the caller per output. Afterwards the outputs can be taken.
  void run(const RunState& state, std::span<const Tensor> destinations);
  // The value of the program's output i; undefined if the plan does not compute it.
  const Value& output(size_t i) const { return at(values_, program_.output_slots()[i]); }
  Value take_output(size_t i);
  // Lets go of everything that belongs to the run.
  void clear();

  // From now on the runs are iterations of a loop: buffers of one are kept for the next ones.
  void begin_iterations();
  // How output `output` becomes argument `input` of the next iteration.
  enum class Carry : uint8_t {
    by_value,  // as any value
    by_swap,   // swap() does it: the argument's memory will be that of the output
    in_place,  // it is the argument
  };
  Carry how_to_carry(size_t output, size_t input) const;
  void swap(size_t output, size_t input);

  const Value& value(int slot) const { return values_[static_cast<size_t>(slot)]; }

 private:
  struct Call {
    const Kernel* kernel;
    KernelRun run;
    bool is_plain;  // nothing to do but to run the kernel
    size_t first_output;
  };

  // Items one after the other that always do the same on the device with the same memory: recorded when they run for
  // the second time, and given to the device as a whole from then on.
  struct Recorded {
    size_t first, last;
    std::unique_ptr<Recording> recording;
    bool is_unfit = false;  // something in it cannot be recorded
  };

  int argument_slot(size_t i) const;
  void set_argument_views();
  void find_recordable_items();
  bool is_recordable(const Plan::Item& item) const;
  // Whether the items were run by it.
  bool run_recorded(Recorded& recorded);
  // Destinations on another device than `reached`, which may be null, are left alone.
  void allocate(const RunState& state, int block, std::span<const Tensor> destinations,
                const Device* reached = nullptr);
  std::shared_ptr<void> take_buffer(const RunState& state, int block);
  // Items [first, last), one after the other.
  void run_items(const RunState& state, size_t first, size_t last, std::span<const Tensor> destinations);
  // The same for items that do not depend on each other, each on one thread.
  void run_side_by_side(const RunState& state, size_t first, size_t last, std::span<const Tensor> destinations);
  void run_item(const RunState& state, size_t index, std::span<const Tensor> destinations);
  // The same for those who measure or watch it.
  void run_observed(const RunState& state, size_t index, std::span<const Tensor> destinations);
  // Runs the item's kernel, and tells the watcher before and after.
  void run_watched(RunWatcher& watcher, size_t index, FunctionRef<void()> run) const;
  // What the item did in `run`.
  StepProfile measure(size_t index, FunctionRef<void()> run) const;
  void run_kernel(const RunState& state, size_t index, std::span<const Tensor> destinations);
  // Infers again, now that the contents are there, to find what is wrong with them.
  void check(const Step& step) const;
  std::shared_ptr<void> allocate_arena(bool on_device) const;
  void* arena_at(const Plan::Block& block) const {
    return static_cast<std::byte*>(arenas_[block.on_device].get()) + block.offset;
  }
  // Throws the exception that is being handled as an error of the item's node, which a device has done if it is waited
  // for.
  [[noreturn]] void rethrow_at(size_t index, bool is_waited_for = true) const;
  void run_alone_at(const RunState& state, const Step& step);
  // Copies a tensor between host and device; `to` has no memory yet unless `is_placed`.
  void copy(const Step& step, bool is_placed);

  const Program& program_;
  ThreadPool& threads_;
  Allocator& allocator_;
  Queue* queue_;  // of the program's device, if it has one
  std::shared_ptr<const Plan> plan_;
  std::shared_ptr<void> arenas_[2];  // of the host and of the device
  int64_t arena_bytes_[2] = {0, 0};
  std::vector<Value> values_;  // by slot
  std::vector<const Value*> inputs_;
  std::vector<KernelRun::Output> outputs_;
  std::vector<Call> calls_;
  // Buffers of the last two iterations, by block; those that nobody else holds are used again.
  std::vector<std::array<std::shared_ptr<void>, 2>> recent_buffers_;
  bool iterates_ = false;
  std::vector<Recorded> recorded_;
  int64_t runs_ = 0;  // since the plan was bound
};

}  // namespace tenon

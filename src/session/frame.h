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
  ~Frame();

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
    SmallVector<int, 1> awaited;  // items that copy to the device beside its work what this one is the first to read
    bool is_beside = false;       // a copy that need not be in the order of the device's work
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
  void find_copies_beside();
  void forget_recordings();
  // Holds the device back until what the item reads has arrived.
  void await_uploads(size_t index);
  bool reads_download(const Step& step) const;
  bool is_recordable(const Plan::Item& item) const;
  // Whether the items were run by it.
  bool run_recorded(Recorded& recorded);
  // Destinations on another device than `reached`, which may be null, are left alone.
  void allocate(const RunState& state, int block, std::span<const Tensor> destinations,
                const Device* reached = nullptr);
  std::shared_ptr<void> take_buffer(const RunState& state, int block);
  // Whether somebody measures or watches the steps of the run, or wants to know which one fails.
  bool is_observed(const RunState& state) const;
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
  // Runs all items.
  void run_all(const RunState& state, std::span<const Tensor> destinations);
  // Copies a tensor between host and device.
  void copy(size_t index, std::span<const Tensor> destinations);
  // Whether what a copy to the host makes is to be in the device's memory instead.
  bool stays_on_device(int slot, std::span<const Tensor> destinations) const;
  // Nanoseconds that the device takes for the item, of so many repetitions in one go. The item has not run yet, and its
  // inputs are the same afterwards.
  int64_t time_on_device(size_t index, int repeats);

  const Program& program_;
  ThreadPool& threads_;
  Allocator& allocator_;
  Queue* queue_;                          // of the program's device, if it has one
  std::unique_ptr<Transfers> transfers_;  // with the same; recordings refer to it
  // Whether the device has done everything that this frame gave to it, so that its arena is free; and when the run
  // began.
  bool is_settled_ = false, was_settled_ = false;
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

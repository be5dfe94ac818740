#pragma once

#include <memory>
#include <span>
#include <stop_token>
#include <unordered_map>
#include <vector>

#include "ops/operator.h"
#include "provider/provider.h"
#include "session/precision_choice.h"
#include "tenon/session.h"

namespace tenon {

class DevicePlacement;
class Frame;
class PackedArchive;
struct Placement;
class PlanCaches;
class Program;

// What all steps of one run share.
struct RunState {
  ThreadPool& threads;
  Allocator& allocator;
  PlanCaches& plans;  // of the session; its frames keep threads, allocator and queue
  std::stop_token cancel = {};
  std::vector<StepProfile>* profile = nullptr;
  RunWatcher* watcher = nullptr;
  int branch_threads = 1;  // that may run steps side by side
  Queue* queue = nullptr;  // of the program's device, if it has one
  int device_repeats = 0;  // of steps on it that are profiled

  void throw_if_cancelled() const {
    if (cancel.stop_requested()) throw Error(ErrorCode::cancelled, "the run was cancelled");
  }
};

// A node with its kernel. Values are numbered slots; -1 stands for what is left out.
struct Step {
  const ir::Node* node = nullptr;
  const ops::Operator* op = nullptr;
  std::unique_ptr<Kernel> kernel;
  SmallVector<int, 4> inputs;
  SmallVector<ElementType, 4> input_types;  // as declared
  SmallVector<int, 2> outputs;
  std::vector<std::unique_ptr<Program>> subgraphs;
  bool on_device = false;  // it runs on the program's device, and its outputs are there
  enum class Copy : uint8_t { none, to_device, to_host } copy = Copy::none;  // a tenon.Copy: what it does in a run
  SmallVector<bool, 4> device_inputs;                                        // those that are there
  SmallVector<bool, 2> outputs_may_stay;  // of control flow: those of which nobody reads the content on the host
  std::unique_ptr<Kernel> host_kernel;    // of a step on the device: computes on the host what a plan must know
  std::string_view provider;
  std::string kernel_name;
};

// A graph compiled to a list of steps over slots, one slot per value. What the steps do with memory is decided by a
// Plan, made for the shapes of a run and kept for later runs in the session's PlanCaches. Many runs, and many sessions,
// can share a program.
class Program {
 public:
  // `providers` in order of preference. `placement` receives every node, and the tensors that go from one provider to
  // another. Graph and providers must outlive the program. Of constants that no kernel reads any more, only type and
  // shape stay in the graph. `archive`, which may be null, gives memory to what kernels pack. `devices`: of a graph
  // that a device runs in part.
  static std::unique_ptr<Program> compile(ir::Graph& graph, std::span<const Provider* const> providers,
                                          ThreadPool& threads, Placement& placement,
                                          MemoryUse memory = MemoryUse::normal, const PrecisionChoice& precision = {},
                                          PackedArchive* archive = nullptr, const DevicePlacement* devices = nullptr);

  // Runs the steps that the wanted outputs need. `inputs` has a value per graph input; undefined ones fall back to
  // their initializer. `destinations` (may be empty) has memory of the caller per output, used where it fits. Unwanted
  // outputs stay undefined.
  std::vector<Value> run(const RunState& state, std::span<const Value> inputs, const std::vector<bool>& wanted_outputs,
                         std::span<const Tensor> destinations) const;

  // A value of an outer graph that this one reads.
  struct Capture {
    int outer_slot, inner_slot;
  };

  const std::vector<Step>& steps() const { return steps_; }
  int slot_count() const { return slot_count_; }
  // Initializers by slot; those of graph inputs are defaults.
  const std::vector<std::pair<int, Value>>& constants() const { return constants_; }
  const std::vector<int>& input_slots() const { return input_slots_; }
  const std::vector<int>& output_slots() const { return output_slots_; }
  // Whether a step, or an output, reads graph input i.
  bool reads_input(size_t i) const { return i < input_is_read_.size() && input_is_read_[i]; }
  const std::vector<Capture>& captures() const { return captures_; }

  // Bytes that kernels made of constants, subgraphs included.
  int64_t packed_bytes() const { return packed_bytes_; }

  // The device of the steps that do not run on the host; null if all do.
  Device* device() const { return device_; }
  // Whether the value is in the device's memory.
  bool is_on_device(int slot) const { return device_ && on_device_[static_cast<size_t>(slot)]; }
  // Whether graph input i may be in the device's memory: no step reads it on the host.
  bool takes_on_device(size_t i) const { return device_ && i < device_inputs_.size() && device_inputs_[i]; }
  // Whether graph output i may be in the device's memory: it is made there, and no step reads its copy on the host.
  bool gives_on_device(size_t i) const { return device_ && i < device_outputs_.size() && device_outputs_[i]; }
  // Whether output i of a body stays in the device's memory when it ran: what reads it next reads it there.
  bool keeps_on_device(size_t i) const { return i < kept_outputs_.size() && kept_outputs_[i]; }
  // The content in the device's memory of a slot that is there: that of a constant is there already.
  Value on_device(int slot, const Value& content) const;

  // Its number among the programs that were compiled together, a graph and its subgraphs; and how many they are, which
  // the first one knows.
  int index() const { return index_; }
  int program_count() const { return program_count_; }

 private:
  friend class BoundSubgraph;
  struct Compiler;

  Program() = default;
  // Makes `frame`, which may be null, ready for the arguments: one per graph input and one per capture, null where
  // there is none.
  void prepare_frame(std::unique_ptr<Frame>& frame, const RunState& state, std::span<const Value* const> arguments,
                     const std::vector<bool>& wanted_outputs) const;

  std::vector<Step> steps_;
  int slot_count_ = 0;
  int64_t packed_bytes_ = 0;
  std::vector<std::pair<int, Value>> constants_;
  std::vector<int> input_slots_, output_slots_;
  std::vector<bool> input_is_read_;
  std::vector<Capture> captures_;
  Device* device_ = nullptr;
  std::vector<bool> on_device_;  // by slot
  std::vector<bool> device_inputs_, device_outputs_, kept_outputs_;
  std::unordered_map<int, Value> device_constants_;
  int index_ = 0, program_count_ = 0;
};

}  // namespace tenon

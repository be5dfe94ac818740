#pragma once

#include <memory>
#include <span>
#include <stop_token>
#include <unordered_map>
#include <vector>

#include "ops/operator.h"
#include "provider/provider.h"
#include "tenon/session.h"

namespace tenon {

// What all steps of one run share.
struct RunState {
  ThreadPool& threads;
  Allocator& allocator;
  std::stop_token cancel;

  void throw_if_cancelled() const {
    if (cancel.stop_requested()) throw Error(ErrorCode::cancelled, "the run was cancelled");
  }
};

// A graph compiled to a list of steps over numbered slots, one slot per value. Immutable after compiling, so that many
// runs can share it.
class Program {
 public:
  // `providers` in order of preference. `placement` receives a line per node. The graph must outlive the program.
  static std::unique_ptr<Program> compile(const ir::Graph& graph, std::span<const Provider* const> providers,
                                          ThreadPool& threads, std::vector<NodePlacement>& placement);
  ~Program();

  // Runs the steps that the wanted outputs need. `inputs` has a value per graph input; undefined ones fall back to
  // their initializer. `destinations` (may be empty) has memory of the caller per output. Unwanted outputs stay
  // undefined.
  std::vector<Value> run(RunState& state, std::span<const Value> inputs, const std::vector<bool>& wanted_outputs,
                         std::span<const Tensor> destinations) const;

 private:
  class Frame;
  class BoundSubgraph;
  struct Step;
  struct Compiler;
  struct Capture {
    int outer_slot, inner_slot;
  };

  Program() = default;
  // `needed` says which steps to run; null: all.
  void run_steps(RunState& state, Frame& frame, const std::vector<bool>* needed) const;
  void run_step(RunState& state, Frame& frame, const Step& step) const;
  std::vector<bool> steps_needed(const std::vector<bool>& wanted_outputs) const;

  std::vector<Step> steps_;
  int slot_count_ = 0;
  std::vector<std::pair<int, Value>> constants_;
  std::vector<int> input_slots_, output_slots_;
  std::vector<Capture> captures_;
};

}  // namespace tenon

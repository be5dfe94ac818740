#pragma once

#include <vector>

#include "ops/inference.h"
#include "session/program.h"

namespace tenon {

// Longer arguments never decide shapes.
inline constexpr int64_t most_content = 256;

// Finds out what the values of a program will be for given arguments: their shapes, and the contents of those that
// follow from shapes and weights alone. It is kept from one time to the next, and works out anew only what depends on
// arguments that changed.
class ShapeResolver {
 public:
  enum class ValueKind : uint8_t {
    unset,     // no step makes it
    argument,  // a tensor that the caller gives
    known,     // a tensor whose content is known
    shaped,    // a tensor whose type and shape are known
    unshaped,  // nothing is known before it is there
  };
  enum class StepKind : uint8_t {
    unset,
    gone,    // all its outputs are known
    placed,  // all its outputs are shaped or known
    alone,   // only running it tells what it makes
  };
  struct Slot {
    ValueKind kind = ValueKind::unset;
    bool has_changed = true;  // since the last time
    bool varies = false;      // has changed at some time
    int producer = -1;        // step
    int argument = -1;
    ops::Fact fact;
    Value content;  // what fact.constant points to
  };

  explicit ShapeResolver(const Program& program);

  // `arguments` are one per graph input and one per capture; null where the initializer stands in.
  void resolve(const RunState& state, std::span<const Value* const> arguments, const std::vector<bool>& wanted_outputs);

  const Slot& slot(int index) const { return slots_[static_cast<size_t>(index)]; }
  bool is_needed(int step) const { return needed_[static_cast<size_t>(step)]; }
  StepKind step_kind(int step) const { return kinds_[static_cast<size_t>(step)]; }
  // Whether the contents of its inputs must be checked in every run.
  bool needs_check(int step) const { return needs_check_[static_cast<size_t>(step)]; }
  // Arguments whose content decided something.
  const std::vector<bool>& content_read() const { return content_read_; }
  // The steps that were worked out the last time, because something that they read had changed.
  const std::vector<int>& visited_steps() const { return visited_; }
  // Whether more than shapes and known contents changed the last time: what is known of some value, or how some step
  // runs.
  bool has_other_structure() const { return has_other_structure_; }

 private:
  void start_over(size_t arguments, const std::vector<bool>& wanted_outputs);
  void take_arguments(std::span<const Value* const> arguments);
  void resolve_step(const RunState& state, int index, const Step& step);
  bool infer(const RunState& state, int index, const Step& step, std::span<ops::Fact> outputs);
  void find_known(const RunState& state, int index, const Step& step);
  static bool runs_on_host(const Step& step);
  bool is_small(const Step& step) const;
  bool has_all_known(const Step& step) const;
  bool has_all_contents(const Step& step) const;
  void take_values(const Step& step);
  static void set_known(Slot& slot);
  void evaluate(const RunState& state, int index, const Step& step, bool is_inferred);
  bool find_contents(const RunState& state, const Step& step, uint64_t asked);
  bool find_content(const RunState& state, int slot, int depth);

  const Program& program_;
  std::vector<Slot> slots_;
  std::vector<bool> wanted_outputs_, needed_, needs_check_, content_read_;
  std::vector<StepKind> kinds_;
  std::span<const Value* const> arguments_;
  std::vector<int> visited_;
  bool is_complete_ = false, has_other_structure_ = true;
};

// Calls visit(slot) for what a step reads: its inputs, and what its subgraphs read of this graph.
template <typename Visit>
void each_read(const Step& step, Visit visit) {
  for (int slot : step.inputs) {
    if (slot >= 0) visit(slot);
  }
  for (const auto& subgraph : step.subgraphs) {
    for (const Program::Capture& capture : subgraph->captures()) visit(capture.outer_slot);
  }
}

// Which of the eligible steps the wanted slots need; marks in `wanted` what those read.
template <typename Eligible>
std::vector<bool> needed_steps(const Program& program, std::vector<bool>& wanted, Eligible is_eligible) {
  const std::vector<Step>& steps = program.steps();
  std::vector<bool> needed(steps.size());
  for (size_t i = steps.size(); i-- > 0;) {
    if (!is_eligible(static_cast<int>(i))) continue;
    for (int slot : steps[i].outputs) needed[i] = needed[i] || (slot >= 0 && wanted[static_cast<size_t>(slot)]);
    if (needed[i]) each_read(steps[i], [&](int slot) { wanted[static_cast<size_t>(slot)] = true; });
  }
  return needed;
}

}  // namespace tenon

#include <algorithm>
#include <deque>
#include <limits>

#include "base/checked.h"
#include "base/fail.h"
#include "base/index.h"
#include "ops/layout.h"
#include "session/arena_layout.h"
#include "session/plan.h"
#include "session/step_run.h"

namespace tenon {
namespace {

using ops::Fact;
using Home = Plan::Home;

constexpr int after_the_end = std::numeric_limits<int>::max();
// Larger contents are data, even if they follow from shapes: they are computed when the plan runs.
constexpr int64_t most_known_elements = 4096;

class Planner {
 public:
  Planner(const Program& program, const RunState& state, std::span<const Value* const> arguments,
          const std::vector<bool>& wanted_outputs)
      : program_(program),
        state_(state),
        arguments_(arguments),
        slots_(static_cast<size_t>(program.slot_count())),
        plan_(std::make_shared<Plan>()) {
    plan_->slots.resize(slots_.size());
    plan_->content_read.resize(arguments.size());
    for (size_t i = 0; i < wanted_outputs.size(); ++i) {
      if (wanted_outputs[i]) at(slots_, program.output_slots()[i]).is_output = true;
    }
  }

  std::shared_ptr<const Plan> make() {
    find_needed_steps();
    bind_constants_and_arguments();
    for (size_t i = 0; i < program_.steps().size(); ++i) {
      if (!needed_[i]) continue;
      const Step& step = program_.steps()[i];
      try {
        resolve(static_cast<int>(i), step);
      } catch (Error& error) {
        throw error.at_node(step.node->describe_here());
      }
    }
    drop_unread_steps();
    find_last_uses();
    place_values();
    lay_out();
    return plan_;
  }

 private:
  enum class Kind : uint8_t { unset, argument, known, shaped, unshaped };
  struct SlotState {
    Kind kind = Kind::unset;
    bool is_output = false;
    bool is_kept = false;  // a step without a plan reads it, and may keep it
    int producer = -1;     // step
    int argument = -1;
    int last_item = -1;
    Fact fact;
  };
  enum class StepKind : uint8_t { unset, gone, placed, alone };

  void find_needed_steps() {
    std::vector<bool> wanted(slots_.size());
    for (size_t i = 0; i < slots_.size(); ++i) wanted[i] = slots_[i].is_output;
    needed_ = needed_steps(wanted, [](int) { return true; });
  }

  // Which of the eligible steps the wanted slots need; marks in `wanted` what those read.
  template <typename Eligible>
  std::vector<bool> needed_steps(std::vector<bool>& wanted, Eligible is_eligible) const {
    const std::vector<Step>& steps = program_.steps();
    std::vector<bool> needed(steps.size());
    for (size_t i = steps.size(); i-- > 0;) {
      if (!is_eligible(static_cast<int>(i))) continue;
      needed[i] = std::ranges::any_of(steps[i].outputs, [&](int slot) { return slot >= 0 && at(wanted, slot); });
      if (needed[i]) each_read(steps[i], [&](int slot) { at(wanted, slot) = true; });
    }
    return needed;
  }

  // Inputs, and what subgraphs read of this graph.
  template <typename Visit>
  static void each_read(const Step& step, Visit visit) {
    for (int slot : step.inputs) {
      if (slot >= 0) visit(slot);
    }
    for (const auto& subgraph : step.subgraphs) {
      for (const Program::Capture& capture : subgraph->captures()) visit(capture.outer_slot);
    }
  }

  void bind_constants_and_arguments() {
    for (const auto& [slot, value] : program_.constants()) {
      at(slots_, slot).kind = Kind::known;
      at(slots_, slot).fact = Fact::of(value.tensor());
    }
    const std::vector<int>& inputs = program_.input_slots();
    for (size_t i = 0; i < arguments_.size(); ++i) {
      if (!arguments_[i]) continue;
      SlotState& slot = at(slots_, i < inputs.size() ? inputs[i] : program_.captures()[i - inputs.size()].inner_slot);
      slot.kind = arguments_[i]->is_tensor() ? Kind::argument : Kind::unshaped;
      slot.argument = static_cast<int>(i);
      slot.fact = fact_of(*arguments_[i], {}, /*with_content=*/false);
    }
  }

  // Finds out what a step will make: content, shapes, or neither before it runs.
  void resolve(int index, const Step& step) {
    for (int slot : step.outputs) {
      if (slot >= 0) at(slots_, slot).producer = index;
    }
    SmallVector<const Fact*, 6> inputs;
    bool has_shapes = step.subgraphs.empty(), all_known = true;
    for (size_t i = 0; i < step.inputs.size(); ++i) {
      const int slot = step.inputs[i];
      if (slot >= 0 && at(slots_, slot).kind == Kind::unset) {
        throw Error(ErrorCode::invalid_model,
                    "it has no value: the graph's inputs are not all given by the node that runs it")
            .on_tensor(step.node->input(i)->name);
      }
      inputs.push_back(slot >= 0 ? &at(slots_, slot).fact : nullptr);
      if (slot < 0) continue;
      has_shapes &= at(slots_, slot).kind != Kind::unshaped;
      all_known &= at(slots_, slot).fact.constant != nullptr;
    }
    SmallVector<Fact, 2> outputs(step.outputs.size());
    std::span<const Fact* const> facts{inputs.data(), inputs.size()};
    std::span<Fact> inferred{outputs.data(), outputs.size()};
    if (has_shapes) {
      uint64_t content_read = 0;
      has_shapes = infer_step(step, facts, inferred, &content_read);
      // The shapes may follow from numbers that are computed from arguments.
      while (!has_shapes && find_contents(step, content_read)) {
        for (Fact& fact : outputs) fact = {};
        has_shapes = infer_step(step, facts, inferred, &content_read);
        all_known = std::ranges::all_of(inputs, [](const Fact* fact) { return !fact || fact->constant; });
      }
      for (size_t i = 0; i < inputs.size() && i < 64; ++i) {
        if ((content_read >> i & 1) && inputs[i] && !inputs[i]->constant && !inputs[i]->values)
          at(needs_check_, index) = true;
      }
    }
    if (!has_shapes || has_strings(outputs)) return set_alone(index, step);
    for (size_t i = 0; i < outputs.size(); ++i) {
      if (step.outputs[i] < 0) continue;
      SlotState& slot = at(slots_, step.outputs[i]);
      slot.kind = Kind::shaped;
      slot.fact = std::move(outputs[i]);
      slot.fact.constant = nullptr;
    }
    at(kinds_, index) = StepKind::placed;
    if (step.op->is_random) return;
    if (!take_values(step) && all_known && is_small(step))
      evaluate(index, step);
    else if (has_all_known(step))
      at(kinds_, index) = StepKind::gone;
  }

  void set_alone(int index, const Step& step) {
    at(kinds_, index) = StepKind::alone;
    for (size_t i = 0; i < step.outputs.size(); ++i) {
      if (step.outputs[i] < 0) continue;
      SlotState& slot = at(slots_, step.outputs[i]);
      slot.kind = Kind::unshaped;
      slot.fact = {};
      slot.fact.type = step.node->output(i)->type;
      slot.fact.type.shape.reset();
    }
  }

  static bool has_strings(const SmallVector<Fact, 2>& facts) {
    return std::ranges::any_of(facts, [](const Fact& f) { return f.type.element == ElementType::string; });
  }

  bool is_small(const Step& step) const {
    int64_t elements = 0;
    for (int slot : step.outputs) {
      if (slot >= 0) elements = saturating_add(elements, concrete(*at(slots_, slot).fact.type.shape)->elements());
    }
    return elements <= most_known_elements;
  }
  static int64_t saturating_add(int64_t a, int64_t b) {
    return b > std::numeric_limits<int64_t>::max() - a ? std::numeric_limits<int64_t>::max() : a + b;
  }

  bool has_all_known(const Step& step) const {
    return std::ranges::all_of(step.outputs,
                               [&](int slot) { return slot < 0 || at(slots_, slot).kind == Kind::known; });
  }

  // Contents that inference found, such as those of Shape. Says whether that was all outputs.
  bool take_values(const Step& step) {
    for (int slot : step.outputs) {
      if (slot < 0) continue;
      SlotState& state = at(slots_, slot);
      if (!state.fact.values || !std::ranges::all_of(*state.fact.values, [](const Dim& d) { return d.is_known(); }))
        continue;
      if (std::optional<Tensor> tensor = tensor_of(state.fact)) set_known(slot, std::move(*tensor));
    }
    return has_all_known(step);
  }

  static std::optional<Tensor> tensor_of(const Fact& fact) {
    Tensor tensor(fact.type.element, *concrete(*fact.type.shape));
    if (tensor.elements() != static_cast<int64_t>(fact.values->size())) return std::nullopt;
    auto fill = [&](auto numbers) {
      using T = std::remove_cvref_t<decltype(numbers[0])>;
      for (size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<T>((*fact.values)[i].value());
    };
    switch (tensor.type()) {
      case ElementType::int64:
        fill(tensor.mutable_data<int64_t>());
        return tensor;
      case ElementType::int32:
        fill(tensor.mutable_data<int32_t>());
        return tensor;
      default:
        return std::nullopt;
    }
  }

  void set_known(int slot, Tensor tensor) {
    known_.emplace_back(slot, std::move(tensor));
    SlotState& state = at(slots_, slot);
    state.kind = Kind::known;
    state.fact.constant = &known_.back().second.tensor();
    state.fact.values.reset();
  }

  // Computes a step whose inputs' contents are all there.
  void evaluate(int index, const Step& step) {
    std::deque<Value> contents;
    SmallVector<const Value*, 6> inputs;
    for (int slot : step.inputs) {
      if (slot >= 0) contents.emplace_back(*at(slots_, slot).fact.constant);
      inputs.push_back(slot >= 0 ? &contents.back() : nullptr);
    }
    SmallVector<Value, 2> values(step.outputs.size());
    SmallVector<Value*, 2> outputs;
    for (size_t i = 0; i < values.size(); ++i) outputs.push_back(step.outputs[i] >= 0 ? &values[i] : nullptr);
    run_alone(step, state_, {inputs.data(), inputs.size()}, {outputs.data(), outputs.size()}, {});
    for (size_t i = 0; i < values.size(); ++i) {
      if (outputs[i]) set_known(step.outputs[i], std::move(values[i].tensor()));
    }
    at(kinds_, index) = StepKind::gone;
  }

  // Finds the contents, among those asked for, that follow from small arguments. Says whether there is a new one.
  bool find_contents(const Step& step, uint64_t asked) {
    bool found = false;
    for (size_t i = 0; i < step.inputs.size() && i < 64; ++i) {
      const int slot = step.inputs[i];
      if (slot < 0 || !(asked >> i & 1) || at(slots_, slot).fact.constant) continue;
      found |= find_content(slot, /*depth=*/0);
    }
    return found;
  }

  bool find_content(int slot, int depth) {
    SlotState& state = at(slots_, slot);
    if (state.fact.constant) return true;
    constexpr int deepest = 200;
    if (state.kind == Kind::argument) {
      const Tensor& tensor = at(arguments_, state.argument)->tensor();
      if (tensor.elements() > most_content || tensor.type() == ElementType::string) return false;
      at(plan_->content_read, state.argument) = true;
      state.fact.constant = &tensor;
      return true;
    }
    if (state.kind != Kind::shaped || depth > deepest) return false;
    const Step& step = at(program_.steps(), state.producer);
    if (step.op->is_random || !is_small(step)) return false;
    for (int input : step.inputs) {
      if (input >= 0 && !find_content(input, depth + 1)) return false;
    }
    evaluate(state.producer, step);
    return true;
  }

  // Steps that only fed what is known now.
  void drop_unread_steps() {
    std::vector<bool> wanted(slots_.size());
    for (size_t i = 0; i < slots_.size(); ++i) wanted[i] = slots_[i].is_output;
    std::vector<bool> needed =
        needed_steps(wanted, [&](int i) { return at(needed_, i) && at(kinds_, i) != StepKind::gone; });
    for (size_t i = 0; i < needed.size(); ++i) {
      if (!needed[i]) continue;
      Plan::Item item;
      item.step = static_cast<int>(i);
      item.is_placed = kinds_[i] == StepKind::placed;
      item.needs_check = needs_check_[i];
      plan_->items.push_back(std::move(item));
    }
  }

  void find_last_uses() {
    for (size_t i = 0; i < plan_->items.size(); ++i) {
      const Plan::Item& item = plan_->items[i];
      const Step& step = at(program_.steps(), item.step);
      for (int slot : step.outputs) {
        if (slot >= 0) at(slots_, slot).last_item = static_cast<int>(i);
      }
      each_read(step, [&](int slot) {
        at(slots_, slot).last_item = static_cast<int>(i);
        if (!item.is_placed) at(slots_, slot).is_kept = true;
      });
    }
    for (SlotState& slot : slots_) {
      if (slot.is_output) slot.last_item = after_the_end;
    }
  }

  // Gives every value its block: one of its own, or that of the value it is a view or a part of.
  void place_values() {
    std::vector<Plan::Item> items = std::move(plan_->items);
    for (Plan::Item& item : items) {
      const int here = static_cast<int>(&item - items.data());
      const Step& step = at(program_.steps(), item.step);
      for (int slot : step.inputs) {
        if (slot >= 0) place_given(slot);
      }
      if (!item.is_placed) {
        for (int slot : step.outputs) {
          if (slot >= 0) add_block(slot, Home::kernel, here);
        }
        plan_->items.push_back(std::move(item));
        item_positions_.push_back(here);
        continue;
      }
      for (int slot : step.outputs) {
        if (slot >= 0) describe(slot);
      }
      if (place_views(step)) continue;
      for (size_t i = 0; i < step.outputs.size(); ++i) {
        const int slot = step.outputs[i];
        if (slot < 0 || at(plan_->slots, slot).block >= 0) continue;
        if (i == 0 && overwrite_input(step, slot, here)) continue;
        add_block(slot, Home::arena, here);
      }
      if (place_parts(step)) continue;
      plan_->items.push_back(std::move(item));
      item_positions_.push_back(here);
    }
    for (int slot : program_.output_slots()) {
      if (at(slots_, slot).is_output) place_given(slot);
    }
  }

  void describe(int slot) {
    Plan::Slot& to = at(plan_->slots, slot);
    to.element = at(slots_, slot).fact.type.element;
    to.shape = *concrete(*at(slots_, slot).fact.type.shape);
  }

  int64_t bytes_of(int slot) const {
    const Plan::Slot& s = at(plan_->slots, slot);
    return byte_size(s.element, s.shape.elements());
  }

  // Arguments and known values are where they are.
  void place_given(int slot) {
    const SlotState& state = at(slots_, slot);
    if (at(plan_->slots, slot).block >= 0) return;
    if (state.argument >= 0) {
      if (state.kind == Kind::argument) describe(slot);
      add_block(slot, Home::argument, 0);
      if (state.kind != Kind::argument) at(plan_->slots, slot).element = ElementType::undefined;
    } else if (state.kind == Kind::known) {
      describe(slot);
      add_block(slot, Home::known, 0);
    }
  }

  void add_block(int slot, Home home, int here) {
    Plan::Block block;
    block.home = home;
    block.source = slot;
    block.bytes = at(plan_->slots, slot).element == ElementType::undefined ? 0 : bytes_of(slot);
    block.first_step = here;
    at(plan_->slots, slot).block = static_cast<int>(plan_->blocks.size());
    at(plan_->slots, slot).offset = 0;
    plan_->blocks.push_back(std::move(block));
    join(slot, static_cast<int>(plan_->blocks.size()) - 1);
  }

  void join(int slot, int block_index) {
    Plan::Block& block = at(plan_->blocks, block_index);
    const SlotState& state = at(slots_, slot);
    block.slots.push_back(slot);
    block.last_step = std::max(block.last_step, state.last_item);
    if (block.home == Home::arena && (state.is_output || state.is_kept)) block.home = Home::buffer;
  }

  ops::Layout layout_of(const Step& step) {
    shapes_.clear();
    contents_.clear();
    for (int slot : step.inputs) {
      shapes_.push_back(slot >= 0 ? &at(plan_->slots, slot).shape : nullptr);
      contents_.push_back(slot >= 0 ? at(slots_, slot).fact.constant : nullptr);
    }
    for (int slot : step.outputs) shapes_.push_back(slot >= 0 ? &at(plan_->slots, slot).shape : nullptr);
    std::span<const Shape* const> all{shapes_.data(), shapes_.size()};
    return {*step.node,
            all.first(step.inputs.size()),
            all.subspan(step.inputs.size()),
            {contents_.data(), contents_.size()}};
  }

  // Outputs that are parts of the first input. Says whether that is all of them.
  bool place_views(const Step& step) {
    if (!step.op->view_rule || step.inputs.empty() || step.inputs[0] < 0) return false;
    const Plan::Slot from = at(plan_->slots, step.inputs[0]);
    if (from.block < 0 || from.element == ElementType::undefined) return false;
    const Home home = at(plan_->blocks, from.block).home;
    if (home == Home::kernel || home == Home::none) return false;
    ops::Layout layout = layout_of(step);
    bool all = true;
    for (size_t i = 0; i < step.outputs.size(); ++i) {
      const int slot = step.outputs[i];
      if (slot < 0) continue;
      Plan::Slot& to = at(plan_->slots, slot);
      std::optional<int64_t> first =
          to.element == from.element ? step.op->view_rule(layout, i) : std::optional<int64_t>();
      // What is given out or kept is not to hold on to more than itself.
      const bool is_whole = bytes_of(slot) == at(plan_->blocks, from.block).bytes;
      const bool leaves = at(slots_, slot).is_output || at(slots_, slot).is_kept;
      if (!first || *first * bits_of(to.element) % 8 != 0 || (leaves && !is_whole)) {
        all = false;
        continue;
      }
      to.block = from.block;
      to.offset = from.offset + *first * bits_of(to.element) / 8;
      join(slot, from.block);
    }
    return all;
  }

  // Writes over an input that nobody reads later. What is given out or kept gets memory of its own, which would
  // otherwise be that of a whole chain of steps.
  bool overwrite_input(const Step& step, int slot, int here) {
    if (at(slots_, slot).is_output || at(slots_, slot).is_kept) return false;
    for (size_t i = 0; i < step.inputs.size(); ++i) {
      const int input = step.inputs[i];
      if (input < 0 || !step.kernel->may_overwrite(i)) continue;
      const Plan::Slot& from = at(plan_->slots, input);
      const Plan::Block& block = at(plan_->blocks, from.block);
      if (block.home != Home::arena || block.last_step > here || block.bytes != bytes_of(slot) ||
          bytes_of(input) != block.bytes || from.shape.elements() != at(plan_->slots, slot).shape.elements() ||
          reads_elsewhere(step, i, from.block))
        continue;
      at(plan_->slots, slot).block = from.block;
      at(plan_->slots, slot).offset = 0;
      join(slot, from.block);
      return true;
    }
    return false;
  }

  // Whether another input lies in the same block, but not just where input i does.
  bool reads_elsewhere(const Step& step, size_t i, int block) const {
    return std::ranges::any_of(step.inputs, [&](int slot) {
      return slot >= 0 && slot != step.inputs[i] && at(plan_->slots, slot).block == block &&
             !(at(plan_->slots, slot).shape == at(plan_->slots, step.inputs[i]).shape);
    });
  }

  // Inputs that are parts of the output move there. Says whether that is all of them.
  bool place_parts(const Step& step) {
    if (!step.op->part_rule || step.outputs[0] < 0) return false;
    const int target = at(plan_->slots, step.outputs[0]).block;
    ops::Layout layout = layout_of(step);
    bool all = true;
    for (size_t i = 0; i < step.inputs.size(); ++i) {
      const int slot = step.inputs[i];
      std::optional<int64_t> first = step.op->part_rule(layout, i);
      const Plan::Slot& from = at(plan_->slots, slot);
      const Plan::Block& block = at(plan_->blocks, from.block);
      if (!first || *first * bits_of(from.element) % 8 != 0 || from.block == target || block.home != Home::arena ||
          block.bytes != bytes_of(slot)) {
        all = false;
        continue;
      }
      move_block(from.block, target, at(plan_->slots, step.outputs[0]).offset + *first * bits_of(from.element) / 8);
    }
    return all;
  }

  void move_block(int from, int to, int64_t offset) {
    Plan::Block& source = at(plan_->blocks, from);
    Plan::Block& target = at(plan_->blocks, to);
    for (int slot : source.slots) {
      at(plan_->slots, slot).block = to;
      at(plan_->slots, slot).offset += offset;
      target.slots.push_back(slot);
    }
    target.first_step = std::min(target.first_step, source.first_step);
    target.last_step = std::max(target.last_step, source.last_step);
    source.slots.clear();
    source.home = Home::none;
  }

  // Offsets in the arena, by the time each block is in use; what to allocate and let go with which step.
  void lay_out() {
    struct Event {
      std::vector<int> begin, end;
    };
    const size_t count = item_positions_.empty() ? 0 : static_cast<size_t>(item_positions_.back()) + 1;
    std::vector<Event> events(count);
    for (size_t i = 0; i < plan_->blocks.size(); ++i) {
      const Plan::Block& block = plan_->blocks[i];
      if (block.home != Home::arena && block.home != Home::buffer) continue;
      events[static_cast<size_t>(block.first_step)].begin.push_back(static_cast<int>(i));
      if (block.last_step < static_cast<int>(count))
        events[static_cast<size_t>(block.last_step)].end.push_back(static_cast<int>(i));
    }
    ArenaLayout arena;
    size_t next = 0;
    for (size_t position = 0; position < count; ++position) {
      // A step that became a view has passed its blocks on to the next one that runs.
      while (item_positions_[next] < static_cast<int>(position)) ++next;
      Plan::Item& item = plan_->items[next];
      for (int index : events[position].begin) {
        Plan::Block& block = at(plan_->blocks, index);
        if (block.home == Home::arena)
          block.offset = arena.allocate(block.bytes);
        else
          item.buffers.push_back(index);
      }
      for (int index : events[position].end) {
        Plan::Block& block = at(plan_->blocks, index);
        if (block.home == Home::arena) arena.release(block.offset, block.bytes);
      }
    }
    plan_->arena_bytes = arena.bytes();
    list_transient_slots();
    plan_->known.assign(std::make_move_iterator(known_.begin()), std::make_move_iterator(known_.end()));
  }

  // Values that must go with the run, the earlier the better.
  void list_transient_slots() {
    for (size_t i = 0; i < plan_->slots.size(); ++i) {
      const int slot = static_cast<int>(i);
      const Home home = plan_->home(slot);
      if (home == Home::none || home == Home::known || home == Home::arena) continue;
      plan_->transient.push_back(slot);
      if (home == Home::argument && slots_[i].argument < 0) plan_->argument_views.push_back(slot);
      if (home == Home::argument || slots_[i].last_item == after_the_end) continue;
      auto found = std::ranges::lower_bound(item_positions_, slots_[i].last_item);
      if (found != item_positions_.end())
        plan_->items[static_cast<size_t>(found - item_positions_.begin())].drops.push_back(slot);
    }
  }

  const Program& program_;
  const RunState& state_;
  std::span<const Value* const> arguments_;
  std::vector<SlotState> slots_;
  std::vector<bool> needed_;
  std::vector<bool> needs_check_ = std::vector<bool>(program_.steps().size());
  std::vector<StepKind> kinds_ = std::vector<StepKind>(program_.steps().size());
  std::deque<std::pair<int, Value>> known_;
  std::vector<int> item_positions_;  // of the items that are left, in the list before views were taken out
  SmallVector<const Shape*, 8> shapes_;
  SmallVector<const Tensor*, 8> contents_;
  std::shared_ptr<Plan> plan_;
};

}  // namespace

std::shared_ptr<const Plan> make_plan(const Program& program, const RunState& state,
                                      std::span<const Value* const> arguments,
                                      const std::vector<bool>& wanted_outputs) {
  return Planner(program, state, arguments, wanted_outputs).make();
}

}  // namespace tenon

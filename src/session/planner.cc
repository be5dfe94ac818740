#include <algorithm>
#include <limits>
#include <utility>

#include "base/checked.h"
#include "base/fail.h"
#include "base/index.h"
#include "session/arena_layout.h"
#include "session/plan.h"
#include "session/stages.h"

namespace tenon {
namespace {

using Home = Plan::Home;
using ValueKind = ShapeResolver::ValueKind;

constexpr int after_the_end = std::numeric_limits<int>::max();

// Plans are made while runs wait for them: a better layout is looked for only where it saves much, and among so many
// blocks.
constexpr int64_t arena_worth_squeezing = 1 << 20;
constexpr size_t most_squeezed_blocks = 256;

class Planner {
 public:
  Planner(const Program& program, const ShapeResolver& shapes, const std::vector<bool>& wanted_outputs,
          int branch_threads)
      : program_(program),
        resolved_(shapes),
        slots_(static_cast<size_t>(program.slot_count())),
        branch_threads_(branch_threads),
        plan_(std::make_shared<Plan>()) {
    plan_->slots.resize(slots_.size());
    plan_->content_read = shapes.content_read();
    describe_arguments();
    for (size_t i = 0; i < wanted_outputs.size(); ++i) {
      if (wanted_outputs[i]) at(slots_, program.output_slots()[i]).is_output = true;
    }
  }

  std::shared_ptr<Plan> make() {
    drop_unread_steps();
    if (branch_threads_ > 1) stages_ = arrange_stages(plan_->items, find_views(), program_, resolved_, branch_threads_);
    find_last_uses();
    place_values();
    lay_out();
    list_side_by_side();
    plan_->item_of_step.assign(program_.steps().size(), -1);
    for (size_t i = 0; i < plan_->items.size(); ++i)
      at(plan_->item_of_step, plan_->items[i].step) = static_cast<int>(i);
    return plan_;
  }

 private:
  void describe_arguments() {
    const std::vector<int>& inputs = program_.input_slots();
    for (size_t i = 0; i < plan_->content_read.size(); ++i) {
      const int slot = i < inputs.size() ? inputs[i] : program_.captures()[i - inputs.size()].inner_slot;
      const ShapeResolver::Slot& state = resolved_.slot(slot);
      Plan::Argument argument;
      if (state.argument == static_cast<int>(i)) {
        const bool is_tensor = state.kind == ValueKind::argument;
        argument.kind = is_tensor ? Plan::Argument::Kind::tensor : Plan::Argument::Kind::other;
        if (is_tensor) argument.element = state.fact.type.element;
        if (is_tensor) argument.shape = *concrete(*state.fact.type.shape);
      }
      plan_->arguments.push_back(std::move(argument));
    }
  }

  struct SlotUse {
    bool is_output = false;
    bool is_kept = false;  // a step without a plan reads it, and may keep it
    int last_item = -1;    // the position of the last one that reads or makes it
    int last_readers = 0;  // items there that read it
    int last_reader = -1;  // of these, in the list of items, the last one
  };

  // Steps that only fed what is known now.
  void drop_unread_steps() {
    std::vector<bool> wanted(slots_.size());
    for (size_t i = 0; i < slots_.size(); ++i) wanted[i] = slots_[i].is_output;
    std::vector<bool> needed = needed_steps(program_, wanted, [&](int i) {
      return resolved_.is_needed(i) && resolved_.step_kind(i) != ShapeResolver::StepKind::gone;
    });
    for (size_t i = 0; i < needed.size(); ++i) {
      if (!needed[i]) continue;
      Plan::Item item;
      item.step = static_cast<int>(i);
      item.is_placed = resolved_.step_kind(item.step) == ShapeResolver::StepKind::placed;
      item.needs_check = resolved_.needs_check(item.step);
      if (!item.is_placed)
        each_read(at(program_.steps(), item.step), [&](int slot) { at(slots_, slot).is_kept = true; });
      plan_->items.push_back(std::move(item));
    }
  }

  // Items whose outputs will certainly be views, all of them.
  std::vector<bool> find_views() {
    std::vector<bool> is_view(plan_->items.size()), is_made_alone(slots_.size());
    for (size_t i = 0; i < is_view.size(); ++i) {
      const Plan::Item& item = plan_->items[i];
      const Step& step = at(program_.steps(), item.step);
      if (!item.is_placed) {
        for (int slot : step.outputs) {
          if (slot >= 0) at(is_made_alone, slot) = true;
        }
        continue;
      }
      if (!step.op->view_rule || step.inputs.empty() || step.inputs[0] < 0 || at(is_made_alone, step.inputs[0]))
        continue;
      for (int slot : step.inputs) describe_if_shaped(slot);
      for (int slot : step.outputs) describe_if_shaped(slot);
      const StepLayout layout(*plan_, resolved_, step);
      bool all = true;
      for (size_t output = 0; output < step.outputs.size(); ++output) {
        const int slot = step.outputs[output];
        if (slot >= 0) all &= !leaves(slot) && view_offset(step, layout.get(), output).has_value();
      }
      is_view[i] = all;
    }
    return is_view;
  }

  void describe_if_shaped(int slot) {
    if (slot < 0) return;
    const ValueKind kind = resolved_.slot(slot).kind;
    if (kind == ValueKind::argument || kind == ValueKind::known || kind == ValueKind::shaped) describe(slot);
  }

  // Of an item in the list before views were taken out.
  int position_of(size_t item) const { return stages_.empty() ? static_cast<int>(item) : stages_[item]; }

  void find_last_uses() {
    for (size_t i = 0; i < plan_->items.size(); ++i) {
      const Step& step = at(program_.steps(), plan_->items[i].step);
      const int here = position_of(i);
      for (int slot : step.outputs) {
        if (slot >= 0) at(slots_, slot).last_item = here;
      }
      each_read(step, [&](int slot) {
        SlotUse& use = at(slots_, slot);
        if (std::exchange(use.last_item, here) != here) use.last_readers = 0;
        if (std::exchange(use.last_reader, static_cast<int>(i)) != static_cast<int>(i)) ++use.last_readers;
      });
    }
    for (SlotUse& slot : slots_) {
      if (slot.is_output) slot.last_item = after_the_end;
    }
  }

  // Gives every value its block: one of its own, or that of the value it is a view or a part of.
  void place_values() {
    std::vector<Plan::Item> items = std::move(plan_->items);
    plan_->items.reserve(items.size());
    plan_->blocks.reserve(items.size() + 16);
    item_positions_.reserve(items.size());
    for (Plan::Item& item : items) {
      const int here = position_of(static_cast<size_t>(&item - items.data()));
      const Step& step = at(program_.steps(), item.step);
      each_read(step, [&](int slot) { place_given(slot); });
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
    const ir::Type& type = resolved_.slot(slot).fact.type;
    to.element = type.element;
    to.shape = *concrete(*type.shape);
  }

  int64_t bytes_of(int slot) const {
    const Plan::Slot& s = at(plan_->slots, slot);
    return byte_size(s.element, s.shape.elements());
  }

  // Arguments and known values are where they are.
  void place_given(int slot) {
    const ShapeResolver::Slot& state = resolved_.slot(slot);
    if (at(plan_->slots, slot).block >= 0) return;
    if (state.argument >= 0) {
      if (state.kind == ValueKind::argument) describe(slot);
      add_block(slot, Home::argument, 0);
      if (state.kind != ValueKind::argument) at(plan_->slots, slot).element = ElementType::undefined;
    } else if (state.kind == ValueKind::known) {
      describe(slot);
      if (state.content.defined()) {
        const bool on_device = program_.is_on_device(slot);
        plan_->known.emplace_back(slot, on_device ? program_.on_device(slot, state.content) : state.content);
      }
      add_block(slot, Home::known, 0);
    }
  }

  void add_block(int slot, Home home, int here) {
    Plan::Block block;
    block.home = home;
    block.source = slot;
    block.on_device = program_.is_on_device(slot);
    block.bytes = at(plan_->slots, slot).element == ElementType::undefined ? 0 : bytes_of(slot);
    block.room = resolved_.slot(slot).varies ? checked_add(block.bytes, block.bytes / 4 + 4096) : block.bytes;
    block.first_step = here;
    at(plan_->slots, slot).block = static_cast<int>(plan_->blocks.size());
    at(plan_->slots, slot).offset = 0;
    plan_->blocks.push_back(std::move(block));
    join(slot, static_cast<int>(plan_->blocks.size()) - 1);
  }

  void join(int slot, int block_index) {
    Plan::Block& block = at(plan_->blocks, block_index);
    const SlotUse& state = at(slots_, slot);
    block.slots.push_back(slot);
    block.last_step = std::max(block.last_step, state.last_item);
    if (block.home == Home::arena && (state.is_output || state.is_kept)) block.home = Home::buffer;
  }

  // Outputs that are parts of the first input. Says whether that is all of them.
  bool place_views(const Step& step) {
    if (!step.op->view_rule || step.inputs.empty() || step.inputs[0] < 0) return false;
    const Plan::Slot from = at(plan_->slots, step.inputs[0]);
    if (from.block < 0 || from.element == ElementType::undefined) return false;
    const Home home = at(plan_->blocks, from.block).home;
    if (home == Home::kernel || home == Home::none) return false;
    const StepLayout step_layout(*plan_, resolved_, step);
    const ops::Layout layout = step_layout.get();
    bool all = true;
    for (size_t i = 0; i < step.outputs.size(); ++i) {
      const int slot = step.outputs[i];
      if (slot < 0) continue;
      Plan::Slot& to = at(plan_->slots, slot);
      const std::optional<int64_t> offset = view_offset(step, layout, i);
      // What is given out or kept is not to hold on to more than itself.
      const bool is_whole = bytes_of(slot) == at(plan_->blocks, from.block).bytes;
      if (!offset || (leaves(slot) && !is_whole) ||
          program_.is_on_device(slot) != program_.is_on_device(step.inputs[0])) {
        all = false;
        continue;
      }
      to.block = from.block;
      to.placing = Plan::Placing::view;
      to.leaves = leaves(slot);
      to.offset = from.offset + *offset;
      join(slot, from.block);
    }
    return all;
  }

  bool leaves(int slot) const { return at(slots_, slot).is_output || at(slots_, slot).is_kept; }

  // Where output i begins in the step's first input, in bytes, if it is a part of it.
  std::optional<int64_t> view_offset(const Step& step, const ops::Layout& layout, size_t i) const {
    const ElementType element = at(plan_->slots, step.outputs[i]).element;
    if (element == ElementType::undefined || element != at(plan_->slots, step.inputs[0]).element) return std::nullopt;
    const std::optional<int64_t> first = step.op->view_rule(layout, i);
    if (!first || *first * bits_of(element) % 8 != 0) return std::nullopt;
    return *first * bits_of(element) / 8;
  }

  // Writes over an input that nobody else reads then or later. What is given out or kept gets memory of its own, which
  // would otherwise be that of a whole chain of steps.
  bool overwrite_input(const Step& step, int slot, int here) {
    if (leaves(slot)) return false;
    for (size_t i = 0; i < step.inputs.size(); ++i) {
      const int input = step.inputs[i];
      if (input < 0 || !step.kernel->may_overwrite(i)) continue;
      const Plan::Slot& from = at(plan_->slots, input);
      const Plan::Block& block = at(plan_->blocks, from.block);
      if (block.home != Home::arena || block.on_device != program_.is_on_device(slot) || block.last_step > here ||
          block.bytes != bytes_of(slot) || bytes_of(input) != block.bytes ||
          from.shape.elements() != at(plan_->slots, slot).shape.elements() || reads_elsewhere(step, i, from.block) ||
          others_read(step, block, here))
        continue;
      at(plan_->slots, slot).block = from.block;
      at(plan_->slots, slot).placing = Plan::Placing::over_input;
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

  // Whether items of the same stage read the block too.
  bool others_read(const Step& step, const Plan::Block& block, int here) const {
    return !stages_.empty() && std::ranges::any_of(block.slots, [&](int slot) {
      const SlotUse& use = at(slots_, slot);
      const bool reads = std::ranges::find(step.inputs, slot) != step.inputs.end();
      return use.last_item == here && use.last_readers > int{reads};
    });
  }

  // Inputs that are parts of the output move there. Says whether that is all of them.
  bool place_parts(const Step& step) {
    if (!step.op->part_rule || step.outputs[0] < 0) return false;
    const int target = at(plan_->slots, step.outputs[0]).block;
    const StepLayout step_layout(*plan_, resolved_, step);
    const ops::Layout layout = step_layout.get();
    bool all = true;
    for (size_t i = 0; i < step.inputs.size(); ++i) {
      const int slot = step.inputs[i];
      std::optional<int64_t> first = step.op->part_rule(layout, i);
      const Plan::Slot& from = at(plan_->slots, slot);
      const Plan::Block& block = at(plan_->blocks, from.block);
      if (!first || *first * bits_of(from.element) % 8 != 0 || from.block == target || block.home != Home::arena ||
          block.on_device != at(plan_->blocks, target).on_device || block.bytes != bytes_of(slot)) {
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
      at(plan_->slots, slot).placing = Plan::Placing::part;
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
    const size_t count = item_positions_.empty() ? 0 : static_cast<size_t>(item_positions_.back()) + 1;
    // The blocks that come and go at each position, as lists: a head per position, the next one per block.
    std::vector<int> coming(count, -1), going(count, -1);
    std::vector<int> next_coming(plan_->blocks.size()), next_going(plan_->blocks.size());
    for (size_t i = plan_->blocks.size(); i-- > 0;) {
      const Plan::Block& block = plan_->blocks[i];
      if (block.home != Home::arena && block.home != Home::buffer) continue;
      next_coming[i] = std::exchange(at(coming, block.first_step), static_cast<int>(i));
      if (block.home == Home::arena && block.last_step < static_cast<int>(count))
        next_going[i] = std::exchange(at(going, block.last_step), static_cast<int>(i));
    }
    ArenaLayout arenas[2];
    int64_t live[2] = {}, most_live[2] = {};
    size_t next = 0;
    for (size_t position = 0; position < count; ++position) {
      // A step that became a view has passed its blocks on to the next one that runs.
      while (item_positions_[next] < static_cast<int>(position)) ++next;
      for (int index = coming[position]; index >= 0; index = at(next_coming, index)) {
        Plan::Block& block = at(plan_->blocks, index);
        if (block.home == Home::arena) {
          block.offset = arenas[block.on_device].allocate(block.room);
          int64_t& now = live[block.on_device];
          most_live[block.on_device] = std::max(most_live[block.on_device], now += block.room);
        } else {
          plan_->items[next].buffers.push_back(index);
        }
      }
      for (int index = going[position]; index >= 0; index = at(next_going, index)) {
        const Plan::Block& block = at(plan_->blocks, index);
        arenas[block.on_device].release(block.offset, block.room);
        live[block.on_device] -= block.room;
      }
    }
    for (const bool on_device : {false, true}) {
      int64_t& bytes = plan_->arena_bytes[on_device];
      bytes = arenas[on_device].bytes();
      if (bytes > arena_worth_squeezing && bytes - most_live[on_device] > most_live[on_device] / 20)
        squeeze(on_device, bytes);
    }
    list_transient_slots();
  }

  // Tries a layout that takes longer to find: of the largest blocks together, and behind them of the others.
  void squeeze(bool on_device, int64_t& arena_bytes) {
    std::vector<int> indices;
    for (size_t i = 0; i < plan_->blocks.size(); ++i) {
      if (plan_->blocks[i].home == Home::arena && plan_->blocks[i].on_device == on_device)
        indices.push_back(static_cast<int>(i));
    }
    std::ranges::stable_sort(indices, std::ranges::greater{}, [&](int i) { return at(plan_->blocks, i).room; });
    std::vector<ArenaBlock> blocks;
    for (int index : indices) {
      const Plan::Block& block = at(plan_->blocks, index);
      blocks.push_back({block.first_step, block.last_step, block.room});
    }
    const size_t large = std::min(blocks.size(), most_squeezed_blocks);
    int64_t total = lay_out_by_size(std::span(blocks).first(large));
    for (ArenaBlock& block : std::span(blocks).subspan(large)) {
      block.offset = total;
      total = checked_add(total, ArenaLayout::rounded(block.bytes));
      if (total >= arena_bytes) return;
    }
    if (total >= arena_bytes) return;
    for (size_t i = 0; i < indices.size(); ++i) at(plan_->blocks, indices[i]).offset = blocks[i].offset;
    arena_bytes = total;
  }

  // Values that must go with the run, the earlier the better.
  void list_transient_slots() {
    for (size_t i = 0; i < plan_->slots.size(); ++i) {
      const int slot = static_cast<int>(i);
      const Home home = plan_->home(slot);
      if (home == Home::none || home == Home::known || home == Home::arena) continue;
      plan_->transient.push_back(slot);
      if (home == Home::argument && resolved_.slot(slot).argument < 0) plan_->argument_views.push_back(slot);
      if (home == Home::argument || slots_[i].last_item == after_the_end) continue;
      auto found = std::ranges::lower_bound(item_positions_, slots_[i].last_item);
      if (found != item_positions_.end())
        plan_->items[static_cast<size_t>(found - item_positions_.begin())].drops.push_back(slot);
    }
  }

  // The items that share their stage with others.
  void list_side_by_side() {
    if (stages_.empty()) return;
    for (size_t first = 0, last; first < item_positions_.size(); first = last) {
      for (last = first + 1; last < item_positions_.size() && item_positions_[last] == item_positions_[first];) ++last;
      if (last - first > 1) plan_->side_by_side.emplace_back(static_cast<int>(first), static_cast<int>(last));
    }
  }

  const Program& program_;
  const ShapeResolver& resolved_;
  std::vector<SlotUse> slots_;
  int branch_threads_;
  std::vector<int> stages_;          // of all items; empty: each is its own
  std::vector<int> item_positions_;  // of the items that are left: in the list before views were taken out, or stages
  std::shared_ptr<Plan> plan_;
};

}  // namespace

std::shared_ptr<Plan> make_plan(const Program& program, const ShapeResolver& shapes,
                                const std::vector<bool>& wanted_outputs, int branch_threads) {
  return Planner(program, shapes, wanted_outputs, branch_threads).make();
}

}  // namespace tenon

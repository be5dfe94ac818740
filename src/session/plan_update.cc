#include <algorithm>
#include <utility>

#include "base/index.h"
#include "session/plan.h"

namespace tenon {
namespace {

using Home = Plan::Home;
using Placing = Plan::Placing;
using ValueKind = ShapeResolver::ValueKind;

void exchange_slot(Plan& plan, PlanChange::SlotChange& change) {
  Plan::Slot& slot = at(plan.slots, change.slot);
  std::swap(slot.shape, change.shape);
  std::swap(slot.offset, change.offset);
  // A block that it is has as many bytes.
  if (slot.placing == Placing::own) at(plan.blocks, slot.block).bytes = byte_size(slot.element, slot.shape.elements());
}

class Update {
 public:
  Update(Plan& plan, const Program& program, const ShapeResolver& shapes)
      : plan_(plan), program_(program), resolved_(shapes) {}

  // Says whether the plan holds. `made` is then, and otherwise too, the way back.
  bool run() {
    take_arguments();
    for (int index : resolved_.visited_steps()) {
      const Step& step = at(program_.steps(), index);
      using enum ShapeResolver::StepKind;
      const ShapeResolver::StepKind kind = resolved_.step_kind(index);
      if (kind == placed ? !take_outputs(step) : kind == gone && !take_contents(step)) return false;
      if (const int item = at(plan_.item_of_step, index); item >= 0) made.items.push_back(item);
    }
    return true;
  }

  PlanChange made;

 private:
  void take_arguments() {
    const std::vector<int>& inputs = program_.input_slots();
    for (size_t i = 0; i < plan_.arguments.size(); ++i) {
      const int slot = i < inputs.size() ? inputs[i] : program_.captures()[i - inputs.size()].inner_slot;
      const ShapeResolver::Slot& now = resolved_.slot(slot);
      if (!now.has_changed || now.kind != ValueKind::argument || now.argument != static_cast<int>(i)) continue;
      const Shape shape = *concrete(*now.fact.type.shape);
      made.arguments.emplace_back(i, std::exchange(plan_.arguments[i].shape, shape));
      if (at(plan_.slots, slot).block >= 0) change(slot, at(plan_.slots, slot).offset);
    }
  }

  // The slot has the shape that is resolved now, and this offset.
  void change(int slot, int64_t offset) {
    const Plan::Slot& now = at(plan_.slots, slot);
    PlanChange::SlotChange to{slot, *concrete(*resolved_.slot(slot).fact.type.shape), offset};
    if (now.shape == to.shape && now.offset == to.offset) return;
    exchange_slot(plan_, to);
    // Of two changes of a slot, which come one after the other, the first one is the way back.
    if (made.slots.empty() || made.slots.back().slot != slot) made.slots.push_back(std::move(to));
  }

  bool take_contents(const Step& step) {
    for (int slot : step.outputs) {
      if (slot < 0 || at(plan_.slots, slot).block < 0 || !resolved_.slot(slot).has_changed) continue;
      auto found = std::ranges::find(plan_.known, slot, [](const auto& item) { return item.first; });
      if (found == plan_.known.end() || program_.is_on_device(slot)) return false;
      made.known.emplace_back(found - plan_.known.begin(), std::exchange(found->second, resolved_.slot(slot).content));
      change(slot, at(plan_.slots, slot).offset);
    }
    return true;
  }

  bool take_outputs(const Step& step) {
    if (step.op->part_rule && std::ranges::any_of(step.inputs, [&](int slot) {
          return slot >= 0 && at(plan_.slots, slot).placing == Placing::part;
        }))
      return false;
    for (size_t i = 0; i < step.outputs.size(); ++i) {
      const int slot = step.outputs[i];
      if (slot < 0 || at(plan_.slots, slot).block < 0) continue;
      if (resolved_.slot(slot).kind == ValueKind::known) return false;
      if (resolved_.slot(slot).has_changed) change(slot, at(plan_.slots, slot).offset);
      if (!holds(step, i)) return false;
    }
    return true;
  }

  bool holds(const Step& step, size_t i) {
    const int slot = step.outputs[i];
    const Plan::Slot& to = at(plan_.slots, slot);
    const Plan::Block& block = at(plan_.blocks, to.block);
    const int64_t bytes = byte_size(to.element, to.shape.elements());
    switch (to.placing) {
      case Placing::own:
        return block.home != Home::arena || bytes <= block.room;
      case Placing::over_input:
        return bytes == block.bytes;
      case Placing::part:
        return false;
      case Placing::view: {
        const StepLayout layout(plan_, resolved_, step);
        const std::optional<int64_t> first = step.op->view_rule(layout.get(), i);
        if (!first || *first * bits_of(to.element) % 8 != 0 || (to.leaves && bytes != block.bytes)) return false;
        const int64_t offset = at(plan_.slots, step.inputs[0]).offset + *first * bits_of(to.element) / 8;
        if (offset != to.offset) change(slot, offset);
        return true;
      }
    }
    return false;
  }

  Plan& plan_;
  const Program& program_;
  const ShapeResolver& resolved_;
};

}  // namespace

void exchange(Plan& plan, PlanChange& change) {
  for (auto& [i, shape] : change.arguments) std::swap(plan.arguments[i].shape, shape);
  for (auto& [i, value] : change.known) std::swap(plan.known[i].second, value);
  for (PlanChange::SlotChange& slot : change.slots) exchange_slot(plan, slot);
}

std::optional<PlanChange> update_plan(Plan& plan, const Program& program, const ShapeResolver& shapes) {
  if (shapes.has_other_structure()) return std::nullopt;
  Update update(plan, program, shapes);
  if (update.run()) return std::move(update.made);
  exchange(plan, update.made);
  return std::nullopt;
}

StepLayout::StepLayout(const Plan& plan, const ShapeResolver& shapes, const Step& step) : step_(step) {
  for (int slot : step.inputs) {
    shapes_.push_back(slot >= 0 ? &at(plan.slots, slot).shape : nullptr);
    contents_.push_back(slot >= 0 ? shapes.slot(slot).fact.constant : nullptr);
  }
  for (int slot : step.outputs) shapes_.push_back(slot >= 0 ? &at(plan.slots, slot).shape : nullptr);
}

ops::Layout StepLayout::get() const {
  std::span<const Shape* const> all{shapes_.data(), shapes_.size()};
  return {*step_.node,
          all.first(step_.inputs.size()),
          all.subspan(step_.inputs.size()),
          {contents_.data(), contents_.size()}};
}

}  // namespace tenon

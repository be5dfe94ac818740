#include <algorithm>

#include "base/index.h"
#include "session/plan.h"

namespace tenon {
namespace {

using Home = Plan::Home;
using Placing = Plan::Placing;
using ValueKind = ShapeResolver::ValueKind;

class Update {
 public:
  Update(Plan& plan, const Program& program, const ShapeResolver& shapes)
      : plan_(plan), program_(program), resolved_(shapes) {}

  // Says whether the plan holds.
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

  PlanUpdate made;

 private:
  void take_arguments() {
    const std::vector<int>& inputs = program_.input_slots();
    for (size_t i = 0; i < plan_.arguments.size(); ++i) {
      const int slot = i < inputs.size() ? inputs[i] : program_.captures()[i - inputs.size()].inner_slot;
      const ShapeResolver::Slot& now = resolved_.slot(slot);
      if (!now.has_changed || now.kind != ValueKind::argument || now.argument != static_cast<int>(i)) continue;
      plan_.arguments[i].shape = *concrete(*now.fact.type.shape);
      if (at(plan_.slots, slot).block >= 0) describe(slot);
    }
  }

  // The slot's shape is the one that is resolved now; a block that it is has as many bytes.
  void describe(int slot) {
    Plan::Slot& to = at(plan_.slots, slot);
    to.shape = *concrete(*resolved_.slot(slot).fact.type.shape);
    if (to.placing == Placing::own) at(plan_.blocks, to.block).bytes = bytes_of(slot);
    made.slots.push_back(slot);
  }

  int64_t bytes_of(int slot) const {
    return byte_size(at(plan_.slots, slot).element, at(plan_.slots, slot).shape.elements());
  }

  bool take_contents(const Step& step) {
    for (int slot : step.outputs) {
      if (slot < 0 || at(plan_.slots, slot).block < 0 || !resolved_.slot(slot).has_changed) continue;
      auto found = std::ranges::find(plan_.known, slot, [](const auto& item) { return item.first; });
      if (found == plan_.known.end()) return false;
      found->second = resolved_.slot(slot).content;
      made.known.push_back(static_cast<size_t>(found - plan_.known.begin()));
      describe(slot);
    }
    return true;
  }

  bool take_outputs(const Step& step) {
    if (step.op->part_rule && std::ranges::any_of(step.inputs, [&](int slot) {
          return slot >= 0 && at(plan_.slots, slot).placing == Placing::part;
        }))
      return false;
    const StepLayout step_layout(plan_, resolved_, step);
    for (size_t i = 0; i < step.outputs.size(); ++i) {
      const int slot = step.outputs[i];
      if (slot < 0 || at(plan_.slots, slot).block < 0) continue;
      Plan::Slot& to = at(plan_.slots, slot);
      if (resolved_.slot(slot).kind == ValueKind::known) return false;
      if (resolved_.slot(slot).has_changed) describe(slot);
      if (!holds(step, i, to, bytes_of(slot), step_layout)) return false;
    }
    return true;
  }

  bool holds(const Step& step, size_t i, Plan::Slot& to, int64_t bytes, const StepLayout& layout) {
    const Plan::Block& block = at(plan_.blocks, to.block);
    switch (to.placing) {
      case Placing::own:
        return block.home != Home::arena || bytes <= block.room;
      case Placing::over_input:
        return bytes == block.bytes;
      case Placing::part:
        return false;
      case Placing::view: {
        const std::optional<int64_t> first = step.op->view_rule(layout.get(), i);
        if (!first || *first * bits_of(to.element) % 8 != 0 || (to.leaves && bytes != block.bytes)) return false;
        to.offset = at(plan_.slots, step.inputs[0]).offset + *first * bits_of(to.element) / 8;
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

std::optional<PlanUpdate> update_plan(Plan& plan, const Program& program, const ShapeResolver& shapes) {
  if (shapes.has_other_structure()) return std::nullopt;
  Update update(plan, program, shapes);
  if (!update.run()) return std::nullopt;
  return std::move(update.made);
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

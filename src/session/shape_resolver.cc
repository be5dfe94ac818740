#include "session/shape_resolver.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "base/fail.h"
#include "base/index.h"
#include "session/step_run.h"

namespace tenon {
namespace {

using ops::Fact;

// Larger contents are data, even if they follow from shapes: they are computed when the plan runs.
constexpr int64_t most_known_elements = 4096;

bool same_shape(const Fact& a, const Fact& b) {
  return a.type.kind == b.type.kind && a.type.element == b.type.element && a.type.shape == b.type.shape;
}

std::optional<Tensor> tensor_of(const Fact& fact) {
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

void set_constant(ShapeResolver::Slot& slot, const Value& value) {
  slot.kind = ShapeResolver::ValueKind::known;
  slot.content = value;
  slot.fact = Fact::of(slot.content.tensor());
}

}  // namespace

ShapeResolver::ShapeResolver(const Program& program) : program_(program) {}

void ShapeResolver::resolve(const RunState& state, std::span<const Value* const> arguments,
                            const std::vector<bool>& wanted_outputs) {
  has_other_structure_ = false;
  if (!is_complete_ || wanted_outputs != wanted_outputs_ || content_read_.size() != arguments.size())
    start_over(arguments.size(), wanted_outputs);
  is_complete_ = false;
  arguments_ = arguments;
  visited_.clear();
  const std::vector<bool> content_read = content_read_;
  take_arguments(arguments);
  for (size_t i = 0; i < program_.steps().size(); ++i) {
    if (!needed_[i]) continue;
    const Step& step = program_.steps()[i];
    bool has_changed = kinds_[i] == StepKind::unset;
    each_read(step, [&](int slot) { has_changed |= at(slots_, slot).has_changed; });
    if (!has_changed) {
      for (int slot : step.outputs) {
        if (slot >= 0) at(slots_, slot).has_changed = false;
      }
      continue;
    }
    visited_.push_back(static_cast<int>(i));
    try {
      resolve_step(state, static_cast<int>(i), step);
    } catch (Error& error) {
      throw error.at_node(step.node->describe_here());
    }
  }
  for (const auto& [slot, _] : program_.constants()) {
    if (at(slots_, slot).argument < 0) at(slots_, slot).has_changed = false;
  }
  has_other_structure_ |= content_read != content_read_;
  is_complete_ = true;
}

void ShapeResolver::start_over(size_t arguments, const std::vector<bool>& wanted_outputs) {
  has_other_structure_ = true;
  slots_.assign(static_cast<size_t>(program_.slot_count()), Slot());
  kinds_.assign(program_.steps().size(), StepKind::unset);
  needs_check_.assign(program_.steps().size(), false);
  content_read_.assign(arguments, false);
  wanted_outputs_ = wanted_outputs;
  std::vector<bool> wanted(slots_.size());
  for (size_t i = 0; i < wanted_outputs.size(); ++i) {
    if (wanted_outputs[i]) at(wanted, program_.output_slots()[i]) = true;
  }
  needed_ = needed_steps(program_, wanted, [](int) { return true; });
  for (size_t i = 0; i < program_.steps().size(); ++i) {
    for (int slot : program_.steps()[i].outputs) {
      if (slot >= 0) at(slots_, slot).producer = static_cast<int>(i);
    }
  }
  for (const auto& [slot, value] : program_.constants()) set_constant(at(slots_, slot), value);
}

void ShapeResolver::take_arguments(std::span<const Value* const> arguments) {
  const std::vector<int>& inputs = program_.input_slots();
  for (size_t i = 0; i < arguments.size(); ++i) {
    if (!arguments[i]) {
      if (i >= inputs.size()) continue;
      // Its initializer stands in, unless there is none.
      Slot& slot = at(slots_, inputs[i]);
      if (slot.argument < 0) continue;
      has_other_structure_ = true;
      slot = Slot();
      for (const auto& [index, value] : program_.constants()) {
        if (index == inputs[i]) set_constant(slot, value);
      }
      continue;
    }
    Slot& slot = at(slots_, i < inputs.size() ? inputs[i] : program_.captures()[i - inputs.size()].inner_slot);
    const bool is_tensor = arguments[i]->is_tensor();
    const ValueKind kind = is_tensor ? ValueKind::argument : ValueKind::unshaped;
    if (is_tensor && slot.kind == kind && slot.argument == static_cast<int>(i)) {
      const Tensor& tensor = arguments[i]->tensor();
      SymbolicShape& shape = *slot.fact.type.shape;
      const bool has_shape = std::ranges::equal(shape, tensor.shape(), [](const Dim& d, int64_t n) { return d.is(n); });
      const bool has_type = slot.fact.type.element == tensor.type();
      slot.has_changed = !has_type || !has_shape || (slot.fact.constant && !identical(*slot.fact.constant, tensor));
      if (!slot.has_changed) continue;
      slot.varies = true;
      has_other_structure_ |= !has_type;
      if (has_type && !slot.fact.constant && tensor.rank() == std::ssize(shape)) {
        for (int axis = 0; axis < tensor.rank(); ++axis) at(shape, axis) = tensor.dim(axis);
        continue;
      }
    } else {
      has_other_structure_ = true;
    }
    slot.has_changed = true;
    slot.kind = kind;
    slot.argument = static_cast<int>(i);
    slot.fact = fact_of(*arguments[i], {}, /*with_content=*/false);
    slot.content = Value();
  }
}

void ShapeResolver::resolve_step(const RunState& state, int index, const Step& step) {
  struct Before {
    ValueKind kind = ValueKind::unset;
    bool has_shape = false;  // that it has now
    ElementType element = ElementType::undefined;
    Value content;
  };
  const StepKind kind = at(kinds_, index);
  const bool needs_check = needs_check_[static_cast<size_t>(index)];
  SmallVector<Fact, 3> facts(step.outputs.size());
  const bool has_shapes = infer(state, index, step, {facts.data(), facts.size()});
  at(kinds_, index) = has_shapes ? StepKind::placed : StepKind::alone;
  SmallVector<Before, 3> before(step.outputs.size());
  for (size_t i = 0; i < facts.size(); ++i) {
    if (step.outputs[i] < 0) continue;
    Slot& slot = at(slots_, step.outputs[i]);
    facts[i].constant = nullptr;
    if (!has_shapes) facts[i] = {.type = step.node->output(i)->type, .values = {}, .constant = nullptr};
    before[i] = {slot.kind, same_shape(facts[i], slot.fact), slot.fact.type.element,
                 std::exchange(slot.content, Value())};
    slot.kind = has_shapes ? ValueKind::shaped : ValueKind::unshaped;
    slot.fact = std::move(facts[i]);
  }
  if (has_shapes && !step.op->is_random) find_known(state, index, step);
  for (size_t i = 0; i < before.size(); ++i) {
    if (step.outputs[i] < 0) continue;
    Slot& now = at(slots_, step.outputs[i]);
    const bool has_kind = now.kind == before[i].kind;
    now.has_changed = !has_kind || !before[i].has_shape || now.kind == ValueKind::unshaped ||
                      (now.kind == ValueKind::known && !identical(now.content.tensor(), before[i].content.tensor()));
    now.varies |= now.has_changed && before[i].kind != ValueKind::unset;
    has_other_structure_ |= !has_kind || now.fact.type.element != before[i].element;
  }
  has_other_structure_ |= kind != at(kinds_, index) || needs_check != needs_check_[static_cast<size_t>(index)];
}

// Says whether the outputs are tensors of known shapes.
bool ShapeResolver::infer(const RunState& state, int index, const Step& step, std::span<Fact> outputs) {
  needs_check_[static_cast<size_t>(index)] = false;
  SmallVector<const Fact*, 6> inputs;
  bool has_shapes = step.subgraphs.empty();
  for (size_t i = 0; i < step.inputs.size(); ++i) {
    const int slot = step.inputs[i];
    inputs.push_back(slot >= 0 ? &at(slots_, slot).fact : nullptr);
    if (slot < 0) continue;
    if (at(slots_, slot).kind == ValueKind::unset) fail_without_value(step, i);
    has_shapes &= at(slots_, slot).kind != ValueKind::unshaped;
  }
  if (!has_shapes) return false;
  std::span<const Fact* const> facts{inputs.data(), inputs.size()};
  uint64_t content_read = 0;
  has_shapes = infer_step(step, facts, outputs, &content_read);
  // The shapes may follow from numbers that are computed from arguments.
  while (!has_shapes && find_contents(state, step, content_read)) {
    for (Fact& fact : outputs) fact = {};
    has_shapes = infer_step(step, facts, outputs, &content_read);
  }
  for (size_t i = 0; i < inputs.size() && i < 64; ++i) {
    if ((content_read >> i & 1) && inputs[i] && !inputs[i]->constant && !inputs[i]->values)
      needs_check_[static_cast<size_t>(index)] = true;
  }
  const bool has_strings =
      std::ranges::any_of(outputs, [](const Fact& fact) { return fact.type.element == ElementType::string; });
  return has_shapes && !has_strings;
}

// Contents of the outputs that follow from what is known of the inputs.
void ShapeResolver::find_known(const RunState& state, int index, const Step& step) {
  take_values(step);
  if (has_all_known(step))
    at(kinds_, index) = StepKind::gone;
  else if (has_all_contents(step) && is_small(step) && runs_on_host(step))
    evaluate(state, index, step, /*is_inferred=*/true);
}

bool ShapeResolver::runs_on_host(const Step& step) { return !step.on_device || step.host_kernel; }

bool ShapeResolver::is_small(const Step& step) const {
  int64_t room = most_known_elements;
  for (int slot : step.outputs) {
    if (slot < 0) continue;
    const int64_t elements = concrete(*at(slots_, slot).fact.type.shape)->elements();
    if (elements > room) return false;
    room -= elements;
  }
  return true;
}

bool ShapeResolver::has_all_known(const Step& step) const {
  return std::ranges::all_of(step.outputs,
                             [&](int slot) { return slot < 0 || at(slots_, slot).kind == ValueKind::known; });
}

bool ShapeResolver::has_all_contents(const Step& step) const {
  return std::ranges::all_of(step.inputs, [&](int slot) { return slot < 0 || at(slots_, slot).fact.constant; });
}

// Contents that inference found, such as those of Shape.
void ShapeResolver::take_values(const Step& step) {
  for (int index : step.outputs) {
    if (index < 0) continue;
    Slot& slot = at(slots_, index);
    const std::optional<SymbolicValues>& values = slot.fact.values;
    if (!values || !std::ranges::all_of(*values, [](const Dim& d) { return d.is_known(); })) continue;
    std::optional<Tensor> tensor = tensor_of(slot.fact);
    if (!tensor) continue;
    slot.content = std::move(*tensor);
    set_known(slot);
  }
}

// Its content is there.
void ShapeResolver::set_known(Slot& slot) {
  slot.kind = ValueKind::known;
  slot.fact.constant = &slot.content.tensor();
  slot.fact.values.reset();
}

// Computes a step whose inputs' contents are all there. `is_inferred`: the slots of its outputs have types and shapes
// that were inferred from them.
void ShapeResolver::evaluate(const RunState& state, int index, const Step& step, bool is_inferred) {
  SmallVector<const Value*, 6> inputs;
  for (int slot : step.inputs) inputs.push_back(slot >= 0 ? &at(slots_, slot).content : nullptr);
  const std::span<const Value* const> given{inputs.data(), inputs.size()};
  if (is_inferred) {
    SmallVector<KernelRun::Output, 2> outputs(step.outputs.size());
    for (size_t i = 0; i < outputs.size(); ++i) {
      if (step.outputs[i] < 0) continue;
      Slot& slot = at(slots_, step.outputs[i]);
      slot.content = Value();
      outputs[i].value = &slot.content;
      outputs[i].element = slot.fact.type.element;
      outputs[i].shape = concrete(*slot.fact.type.shape);
    }
    run_inferred(step, state, given, {outputs.data(), outputs.size()}, {}, RunsWhere::on_host);
  } else {
    SmallVector<Value*, 2> outputs;
    for (int slot : step.outputs) outputs.push_back(slot >= 0 ? &at(slots_, slot).content : nullptr);
    run_alone(step, state, given, {outputs.data(), outputs.size()}, {}, RunsWhere::on_host);
  }
  for (int slot : step.outputs) {
    if (slot >= 0) set_known(at(slots_, slot));
  }
  at(kinds_, index) = StepKind::gone;
}

// Finds the contents, among those asked for, that follow from small arguments. Says whether there is a new one.
bool ShapeResolver::find_contents(const RunState& state, const Step& step, uint64_t asked) {
  bool found = false;
  for (size_t i = 0; i < step.inputs.size() && i < 64; ++i) {
    const int slot = step.inputs[i];
    if (slot < 0 || !(asked >> i & 1) || at(slots_, slot).fact.constant) continue;
    found |= find_content(state, slot, /*depth=*/0);
  }
  return found;
}

bool ShapeResolver::find_content(const RunState& state, int index, int depth) {
  Slot& slot = at(slots_, index);
  if (slot.fact.constant) return true;
  if (slot.kind == ValueKind::argument) {
    if (program_.is_on_device(index)) return false;
    const Tensor& tensor = at(arguments_, slot.argument)->tensor();
    if (tensor.elements() > most_content || tensor.type() == ElementType::string) return false;
    if (tensor.elements() > 0 && !tensor.raw()) return false;  // foreseen, not there yet
    at(content_read_, slot.argument) = true;
    slot.content = tensor.clone();
    slot.fact.constant = &slot.content.tensor();
    return true;
  }
  constexpr int deepest = 200;
  if (slot.kind != ValueKind::shaped || depth > deepest) return false;
  const Step& step = at(program_.steps(), slot.producer);
  if (step.op->is_random || !is_small(step) || !runs_on_host(step)) return false;
  for (int input : step.inputs) {
    if (input >= 0 && !find_content(state, input, depth + 1)) return false;
  }
  evaluate(state, slot.producer, step, /*is_inferred=*/false);
  return true;
}

}  // namespace tenon

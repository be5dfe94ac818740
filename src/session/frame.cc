#include "session/frame.h"

#include <algorithm>
#include <chrono>
#include <deque>
#include <stdexcept>
#include <utility>

#include "base/environment.h"
#include "base/fail.h"
#include "base/index.h"
#include "ops/cost.h"
#include "session/bound_subgraph.h"
#include "session/step_run.h"
#include "tenon/device.h"

namespace tenon {
namespace {

using Home = Plan::Home;

Tensor tensor_at(const Plan::Slot& slot, void* base, std::shared_ptr<void> owner = nullptr) {
  return Tensor::over(slot.element, slot.shape, static_cast<std::byte*>(base) + slot.offset, std::move(owner));
}

const void* bytes_at(const Tensor& tensor, int64_t offset) {
  return static_cast<const std::byte*>(tensor.raw()) + offset;
}

}  // namespace

Frame::Frame(const Program& program, const RunState& state)
    : program_(program),
      threads_(state.threads),
      allocator_(state.allocator),
      queue_(state.queue),
      transfers_(queue_ ? queue_->make_transfers() : nullptr),
      values_(static_cast<size_t>(program.slot_count())) {}

Frame::~Frame() { forget_recordings(); }

void Frame::bind(std::shared_ptr<const Plan> plan) {
  forget_recordings();
  is_settled_ = false;
  calls_.clear();
  recent_buffers_.clear();
  iterates_ = false;
  plan_ = std::move(plan);
  for (const bool on_device : {false, true}) {
    if (plan_->arena_bytes[on_device] <= arena_bytes_[on_device]) continue;
    arenas_[on_device].reset();
    arena_bytes_[on_device] = 0;
    try {
      arenas_[on_device] = allocate_arena(on_device);
    } catch (...) {
      plan_.reset();
      throw;
    }
    arena_bytes_[on_device] = plan_->arena_bytes[on_device];
  }
  for (Value& value : values_) value = Value();
  for (const auto& [slot, value] : program_.constants()) at(values_, slot) = value;
  for (const auto& [slot, value] : plan_->known) at(values_, slot) = value;
  for (const Plan::Block& block : plan_->blocks) {
    if (block.home != Home::arena && block.home != Home::known) continue;
    const bool is_known = block.home == Home::known;
    void* base = is_known ? at(values_, block.source).tensor().mutable_raw() : arena_at(block);
    // Known values may be given out.
    const std::shared_ptr<void> owner = is_known ? at(values_, block.source).tensor().owner() : nullptr;
    for (int slot : block.slots) {
      if (!is_known || slot != block.source) at(values_, slot) = tensor_at(at(plan_->slots, slot), base, owner);
    }
  }

  size_t input_count = 0, output_count = 0;
  for (const Plan::Item& item : plan_->items) {
    const Step& step = at(program_.steps(), item.step);
    input_count += step.inputs.size();
    output_count += step.outputs.size();
  }
  inputs_.clear();
  outputs_.clear();
  inputs_.reserve(input_count);
  outputs_.reserve(output_count);
  calls_.reserve(plan_->items.size());
  for (const Plan::Item& item : plan_->items) {
    const Step& step = at(program_.steps(), item.step);
    const size_t first_input = inputs_.size(), first_output = outputs_.size();
    for (int slot : step.inputs) inputs_.push_back(slot >= 0 ? &at(values_, slot) : nullptr);
    for (int slot : step.outputs) {
      KernelRun::Output output;
      if (slot >= 0) {
        output.value = &at(values_, slot);
        output.element = at(plan_->slots, slot).element;
        output.is_placed = item.is_placed;
        if (item.is_placed) output.shape = at(plan_->slots, slot).shape;
      }
      outputs_.push_back(std::move(output));
    }
    calls_.push_back(
        {step.kernel.get(),
         KernelRun(*step.node, std::span(inputs_).subspan(first_input), std::span(outputs_).subspan(first_output), {},
                   threads_, step.on_device ? *queue_ : allocator_, true),
         item.is_placed && step.on_device == (queue_ != nullptr) && step.copy == Step::Copy::none &&
             !item.needs_check && item.buffers.empty() && item.drops.empty() && !(queue_ && reads_download(step)),
         first_output,
         {}});
  }
  find_copies_beside();
  find_recordable_items();
}

void Frame::take(const PlanChange& change) {
  find_copies_beside();
  find_recordable_items();
  for (const auto& [i, _] : change.known) at(values_, plan_->known[i].first) = plan_->known[i].second;
  for (const PlanChange::SlotChange& changed : change.slots) {
    const int index = changed.slot;
    const Plan::Slot& slot = at(plan_->slots, index);
    const Plan::Block& block = at(plan_->blocks, slot.block);
    if (block.home == Home::arena) {
      at(values_, index) = tensor_at(slot, arena_at(block));
    } else if (block.home == Home::known) {
      Tensor& source = at(values_, block.source).tensor();
      if (index != block.source) at(values_, index) = tensor_at(slot, source.mutable_raw(), source.owner());
    } else {
      at(values_, index) = Value();
    }
  }
  for (int item : change.items) {
    Call& call = at(calls_, item);
    call.run.forget_plan();
    const Step& step = at(program_.steps(), at(plan_->items, item).step);
    for (size_t i = 0; i < step.outputs.size(); ++i) {
      std::optional<Shape>& shape = outputs_[call.first_output + i].shape;
      if (shape) shape = at(plan_->slots, step.outputs[i]).shape;
    }
  }
}

std::shared_ptr<void> Frame::allocate_arena(bool on_device) const {
  try {
    return (on_device ? *queue_ : allocator_).allocate(plan_->arena_bytes[on_device]);
  } catch (Error& error) {
    // Name who needs most of it.
    int largest = -1;
    for (size_t i = 0; i < plan_->blocks.size(); ++i) {
      if (plan_->blocks[i].home != Home::arena || plan_->blocks[i].on_device != on_device) continue;
      if (largest < 0 || plan_->blocks[i].bytes > at(plan_->blocks, largest).bytes) largest = static_cast<int>(i);
    }
    if (largest < 0) throw;
    for (const Step& step : program_.steps()) {
      if (std::ranges::find(step.outputs, at(plan_->blocks, largest).source) != step.outputs.end())
        throw error.at_node(step.node->describe_here());
    }
    throw;
  }
}

bool Frame::fits(size_t i, const Value& value) const {
  if (!plan_ || plan_->content_read[i]) return false;
  const Plan::Argument& expected = plan_->arguments[i];
  if (!value.is_tensor()) return value.defined() && expected.kind == Plan::Argument::Kind::other;
  return expected.kind == Plan::Argument::Kind::tensor && value.tensor().type() == expected.element &&
         value.tensor().shape() == expected.shape;
}

int Frame::argument_slot(size_t i) const {
  const std::vector<int>& inputs = program_.input_slots();
  return i < inputs.size() ? inputs[i] : program_.captures()[i - inputs.size()].inner_slot;
}

Value Frame::take_argument(size_t i) {
  const int slot = argument_slot(i);
  const int block = at(plan_->slots, slot).block;
  for (int view : plan_->argument_views) {
    if (at(plan_->slots, view).block == block) at(values_, view) = Value();
  }
  return block >= 0 ? std::exchange(at(values_, slot), Value()) : Value();
}

void Frame::run(const RunState& state, std::span<const Tensor> destinations) {
  set_argument_views();
  // Who looks at values in between wants them one after the other.
  was_settled_ = std::exchange(is_settled_, false) && !is_observed(state);
  try {
    run_all(state, destinations);
    if (transfers_) transfers_->finish_downloads();
  } catch (...) {
    is_settled_ = false;
    if (transfers_) transfers_->abandon();
    throw;
  }
  ++runs_;
}

void Frame::run_all(const RunState& state, std::span<const Tensor> destinations) {
  size_t next = 0;
  for (auto [first, last] : plan_->side_by_side) {
    run_items(state, next, static_cast<size_t>(first), destinations);
    next = static_cast<size_t>(last);
    run_side_by_side(state, static_cast<size_t>(first), next, destinations);
  }
  run_items(state, next, calls_.size(), destinations);
}

bool Frame::is_observed(const RunState& state) const {
  return state.profile || state.watcher || (queue_ && waits_after_every_node());
}

void Frame::run_items(const RunState& state, size_t first, size_t last, std::span<const Tensor> destinations) {
  const bool observed = is_observed(state);
  size_t i = first;
  try {
    for (; i < last; ++i) {
      Call& call = calls_[i];
      state.throw_if_cancelled();
      if (!call.awaited.empty()) await_uploads(i);
      if (!recorded_.empty() && !observed) {
        auto recorded = std::ranges::find(recorded_, i, &Recorded::first);
        if (recorded != recorded_.end() && recorded->last <= last && run_recorded(*recorded)) {
          i = recorded->last - 1;
          continue;
        }
      }
      if (observed)
        run_observed(state, i, destinations);
      else if (call.is_plain)
        call.kernel->run(call.run);
      else
        run_item(state, i, destinations);
    }
  } catch (...) {
    rethrow_at(i, observed);
  }
}

void Frame::rethrow_at(size_t index, bool is_waited_for) const {
  const ir::Node& node = *at(program_.steps(), plan_->items[index].step).node;
  try {
    throw;
  } catch (Error& error) {
    // A device that is lost fails whatever comes next.
    if (queue_ && error.code() == ErrorCode::device_lost && !is_waited_for) throw;
    throw error.at_node(node.describe_here());
  } catch (const std::bad_alloc&) {
    throw Error(ErrorCode::out_of_memory, "the system has no memory left").at_node(node.describe_here());
  } catch (const std::length_error&) {
    throw Error(ErrorCode::overflow, "working memory of more elements than fit is needed")
        .at_node(node.describe_here());
  }
}

void Frame::set_argument_views() {
  for (int slot : plan_->argument_views) {
    const Plan::Slot& view = at(plan_->slots, slot);
    const Tensor& source = at(values_, at(plan_->blocks, view.block).source).tensor();
    const Value& now = at(values_, slot);
    // Of an earlier iteration, with the same argument.
    if (now.defined() && now.tensor().owner() == source.owner() && now.tensor().raw() == bytes_at(source, view.offset))
      continue;
    at(values_, slot) = tensor_at(view, const_cast<void*>(source.raw()), source.owner());
  }
}

void Frame::run_item(const RunState& state, size_t index, std::span<const Tensor> destinations) {
  run_kernel(state, index, destinations);
  for (int slot : plan_->items[index].drops) at(values_, slot) = Value();
}

void Frame::run_kernel(const RunState& state, size_t index, std::span<const Tensor> destinations) {
  const Plan::Item& item = plan_->items[index];
  const Step& step = at(program_.steps(), item.step);
  if (transfers_ && reads_download(step)) transfers_->finish_downloads();
  // Only a copy can write to the device what others read on the host.
  const Device* reached = step.copy == Step::Copy::to_host ? program_.device() : nullptr;
  for (int block : item.buffers) allocate(state, block, destinations, reached);
  if (item.is_placed && item.needs_check) check(step);
  if (step.copy != Step::Copy::none)
    copy(index, destinations);
  else if (item.is_placed)
    calls_[index].kernel->run(calls_[index].run);
  else
    run_alone_at(state, step);
}

void Frame::run_observed(const RunState& state, size_t index, std::span<const Tensor> destinations) {
  const auto run = [&] {
    run_kernel(state, index, destinations);
    if (!queue_) return;
    // What a step does is done when it is looked at.
    transfers_->finish_downloads();
    queue_->wait();
  };
  const auto run_and_watch = [&] { state.watcher ? run_watched(*state.watcher, index, run) : run(); };
  const bool is_timed = state.profile && state.device_repeats > 0 && is_recordable(plan_->items[index]);
  const int64_t device_ns = is_timed ? time_on_device(index, state.device_repeats) : 0;
  // Outputs are described before they are let go.
  if (state.profile) {
    state.profile->push_back(measure(index, run_and_watch));
    state.profile->back().device_ns = device_ns;
  } else {
    run_and_watch();
  }
  for (int slot : plan_->items[index].drops) at(values_, slot) = Value();
}

void Frame::run_watched(RunWatcher& watcher, size_t index, FunctionRef<void()> run) const {
  const Step& step = at(program_.steps(), plan_->items[index].step);
  WatchedStep watched{step.node->describe(), step.node->op_type, {}, {}};
  // What is on the device is looked at on the host.
  std::deque<Value> copies;
  const auto operands = [&](std::span<const int> slots, std::span<ir::Value* const> values) {
    std::vector<WatchedStep::Operand> list;
    for (size_t i = 0; i < slots.size(); ++i) {
      const Value* value = slots[i] >= 0 ? &at(values_, slots[i]) : nullptr;
      // What the caller gave may be there too.
      const bool is_there = value && value->defined() && value->is_tensor() &&
                            (program_.is_on_device(slots[i]) || device_of(value->tensor()) != nullptr);
      if (is_there) value = &copies.emplace_back(program_.device()->download(value->tensor()));
      if (value)
        list.push_back({values[i]->name, value});
      else
        list.push_back({"", nullptr});
    }
    return list;
  };
  watched.inputs = operands({step.inputs.data(), step.inputs.size()}, step.node->inputs());
  watched.outputs = operands({step.outputs.data(), step.outputs.size()}, step.node->outputs());
  watcher.before(watched);
  run();
  if (queue_) watched.inputs = operands({step.inputs.data(), step.inputs.size()}, step.node->inputs());
  if (queue_) watched.outputs = operands({step.outputs.data(), step.outputs.size()}, step.node->outputs());
  watcher.after(watched);
}

StepProfile Frame::measure(size_t index, FunctionRef<void()> run) const {
  using Clock = std::chrono::steady_clock;
  const Step& step = at(program_.steps(), plan_->items[index].step);
  StepProfile profile;
  profile.node = step.node->describe();
  profile.op_type = step.node->op_type;
  profile.provider = step.provider;
  profile.kernel = step.kernel_name;
  std::deque<SymbolicShape> shapes;
  std::vector<ops::CostTensor> tensors;
  auto describe = [&](std::span<const int> slots, std::vector<std::string>& texts) {
    for (int slot : slots) {
      const Value* value = slot >= 0 ? &at(values_, slot) : nullptr;
      texts.push_back(value && value->defined() ? value->describe() : "");
      tensors.emplace_back();
      if (!value || !value->is_tensor()) continue;
      shapes.push_back(symbolic(value->tensor().shape()));
      tensors.back() = {value->tensor().type(), &shapes.back()};
    }
  };
  describe({step.inputs.data(), step.inputs.size()}, profile.inputs);
  const size_t inputs = tensors.size();
  const Clock::time_point start = Clock::now();
  run();
  const Clock::time_point end = Clock::now();
  describe({step.outputs.data(), step.outputs.size()}, profile.outputs);
  std::span<const ops::CostTensor> all = tensors;
  if (auto cost = ops::cost_of(*step.node, all.first(inputs), all.subspan(inputs))) {
    profile.flops = static_cast<double>(cost->flops.value());
    profile.bytes = static_cast<double>(cost->bytes.value());
  }
  auto nanoseconds = [](Clock::duration d) { return std::chrono::duration_cast<std::chrono::nanoseconds>(d).count(); };
  profile.start_ns = nanoseconds(start.time_since_epoch());
  profile.duration_ns = nanoseconds(end - start);
  return profile;
}

void Frame::check(const Step& step) const {
  SmallVector<ops::Fact, 4> facts;
  SmallVector<const ops::Fact*, 6> inputs;
  facts.reserve(step.inputs.size());
  for (size_t i = 0; i < step.inputs.size(); ++i) {
    const int slot = step.inputs[i];
    if (slot >= 0) facts.push_back(fact_of(at(values_, slot), step.node->input(i)->type, !step.device_inputs[i]));
    inputs.push_back(slot >= 0 ? &facts.back() : nullptr);
  }
  SmallVector<ops::Fact, 2> outputs(step.outputs.size());
  infer_step(step, {inputs.data(), inputs.size()}, {outputs.data(), outputs.size()});
}

void Frame::allocate(const RunState& state, int index, std::span<const Tensor> destinations, const Device* reached) {
  const Plan::Block& block = at(plan_->blocks, index);
  if (iterates_ && block.slots.size() == 1) {
    // What is there since an earlier iteration, or was an argument of it, will do if nobody else holds it.
    const Value& now = at(values_, block.source);
    if (now.defined() && now.tensor().sole_owner()) return;
  }
  std::shared_ptr<void> owner;
  void* base = nullptr;
  // The caller's memory, where an output is all of the block.
  for (size_t i = 0; i < destinations.size() && !base; ++i) {
    const int slot = program_.output_slots()[i];
    const Plan::Slot& output = at(plan_->slots, slot);
    if (output.block != index || block.on_device) continue;
    if (stands_for_output(destinations[i])) {
      owner = state.queue->allocate(block.bytes);
      base = owner.get();
      continue;
    }
    if (!destinations[i].defined() || destinations[i].bytes() != block.bytes) continue;
    if (const Device* there = device_of(destinations[i]); there && there != reached) continue;
    if (destinations[i].type() != output.element || !(destinations[i].shape() == output.shape)) continue;
    owner = destinations[i].owner();
    base = const_cast<void*>(destinations[i].raw());
  }
  if (!base) {
    owner = take_buffer(state, index);
    base = owner.get();
  }
  for (int slot : block.slots) at(values_, slot) = tensor_at(at(plan_->slots, slot), base, owner);
}

void Frame::run_alone_at(const RunState& state, const Step& step) {
  SmallVector<const Value*, 6> inputs;
  for (size_t i = 0; i < step.inputs.size(); ++i) {
    const int slot = step.inputs[i];
    inputs.push_back(slot >= 0 ? &at(values_, slot) : nullptr);
    if (slot >= 0 && !at(values_, slot).defined()) fail_without_value(step, i);
  }
  SmallVector<Value*, 2> outputs;
  for (int slot : step.outputs) {
    outputs.push_back(slot >= 0 ? &at(values_, slot) : nullptr);
    // What an earlier iteration made may be someone else's now.
    if (slot >= 0) at(values_, slot) = Value();
  }
  std::vector<BoundSubgraph> subgraphs;
  subgraphs.reserve(step.subgraphs.size());
  SmallVector<Subgraph*, 2> pointers;
  for (const auto& program : step.subgraphs) {
    subgraphs.emplace_back(*program, state, *this);
    pointers.push_back(&subgraphs.back());
  }
  run_alone(step, state, {inputs.data(), inputs.size()}, {outputs.data(), outputs.size()},
            {pointers.data(), pointers.size()});
  for (size_t i = 0; i < step.outputs_may_stay.size(); ++i) {
    if (!outputs[i] || step.outputs_may_stay[i] || !outputs[i]->is_tensor()) continue;
    Device* device = device_of(outputs[i]->tensor());
    if (!device) continue;
    state.queue->wait();
    *outputs[i] = device->download(outputs[i]->tensor());
  }
}

Value Frame::take_output(size_t i) {
  const std::vector<int>& slots = program_.output_slots();
  const Home home = plan_->home(slots[i]);
  // Others may want it too.
  const bool is_shared =
      (home != Home::buffer && home != Home::kernel) ||
      std::find(slots.begin() + static_cast<std::ptrdiff_t>(i) + 1, slots.end(), slots[i]) != slots.end();
  return is_shared ? at(values_, slots[i]) : std::exchange(at(values_, slots[i]), Value());
}

void Frame::clear() {
  iterates_ = false;
  recent_buffers_.clear();
  if (!plan_) return;
  for (int slot : plan_->transient) at(values_, slot) = Value();
}

void Frame::begin_iterations() {
  iterates_ = true;
  recent_buffers_.resize(plan_->blocks.size());
}

Frame::Carry Frame::how_to_carry(size_t output, size_t input) const {
  const std::vector<int>& outputs = program_.output_slots();
  const int from = outputs[output], to = argument_slot(input);
  if (from == to) return Carry::in_place;
  const Plan::Slot& slot = at(plan_->slots, from);
  const Plan::Argument& argument = plan_->arguments[input];
  const bool swaps = reads_argument(input) && !plan_->content_read[input] && plan_->home(from) == Home::buffer &&
                     at(plan_->blocks, slot.block).slots.size() == 1 && std::ranges::count(outputs, from) == 1 &&
                     argument.kind == Plan::Argument::Kind::tensor && argument.element == slot.element &&
                     argument.shape == slot.shape;
  return swaps ? Carry::by_swap : Carry::by_value;
}

void Frame::swap(size_t output, size_t input) {
  std::swap(at(values_, program_.output_slots()[output]).tensor(), at(values_, argument_slot(input)).tensor());
}

std::shared_ptr<void> Frame::take_buffer(const RunState& state, int index) {
  const int64_t bytes = at(plan_->blocks, index).bytes;
  Allocator& allocator = at(plan_->blocks, index).on_device ? *state.queue : state.allocator;
  if (!iterates_) return allocator.allocate(bytes);
  auto& recent = at(recent_buffers_, index);
  for (std::shared_ptr<void>& buffer : recent) {
    if (buffer && buffer.use_count() == 1) return buffer;
  }
  std::swap(recent[0], recent[1]);
  recent[0] = allocator.allocate(bytes);
  return recent[0];
}

}  // namespace tenon

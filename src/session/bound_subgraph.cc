#include "session/bound_subgraph.h"

#include "session/plan_cache.h"

namespace tenon {

BoundSubgraph::BoundSubgraph(const Program& program, const RunState& state, const Frame& outer)
    : program_(program),
      state_(state),
      outer_(outer),
      wanted_(program.output_slots().size(), true),
      inputs_(program.input_slots().size()) {
  for (size_t i = 0; i < wanted_.size(); ++i) {
    if (!program.keeps_on_device(i)) continue;
    destinations_.resize(wanted_.size());
    destinations_[i] = Tensor::over(ElementType::undefined, {}, nullptr, state.queue->allocate(0));
  }
}

BoundSubgraph::~BoundSubgraph() {
  if (frame_) state_.plans.of(program_).give_back(std::move(frame_));
}

void BoundSubgraph::give_input(size_t i, Value value) {
  if (i >= inputs_.size()) return;
  if (frame_ && frame_->fits(i, value)) {
    if (frame_->reads_argument(i)) return frame_->set_argument(i, std::move(value));
  } else {
    is_arranged_ = false;
  }
  inputs_[i] = std::move(value);
}

Value BoundSubgraph::take_input(size_t i) {
  if (i >= inputs_.size()) return {};
  if (inputs_[i].defined() || !frame_) return std::exchange(inputs_[i], Value());
  return frame_->take_argument(i);
}

void BoundSubgraph::run() {
  // A body without steps would never come to ask.
  state_.throw_if_cancelled();
  if (!is_arranged_) arrange();
  frame_->run(state_, destinations_);
}

// Makes the frame ready for the inputs that are given now.
void BoundSubgraph::arrange() {
  for (size_t i = 0; i < inputs_.size(); ++i) inputs_[i] = take_input(i);
  SmallVector<const Value*, 8> arguments;
  for (const Value& input : inputs_) arguments.push_back(input.defined() ? &input : nullptr);
  for (const Program::Capture& capture : program_.captures()) {
    const Value& value = outer_.value(capture.outer_slot);
    arguments.push_back(value.defined() ? &value : nullptr);
  }
  program_.prepare_frame(frame_, state_, {arguments.data(), arguments.size()}, wanted_);
  frame_->begin_iterations();
  for (size_t i = 0; i < arguments.size(); ++i) {
    if (!arguments[i] || !frame_->reads_argument(i)) continue;
    frame_->set_argument(i, i < inputs_.size() ? std::move(inputs_[i]) : Value(*arguments[i]));
    if (i < inputs_.size()) inputs_[i] = Value();
  }
  is_arranged_ = true;
  carries_.clear();
}

void BoundSubgraph::carry(size_t output, size_t input, size_t count) {
  using enum Frame::Carry;
  for (size_t i = carries_.size(); i < count; ++i) carries_.push_back(frame_->how_to_carry(output + i, input + i));
  // All are taken before one is given: an output may be another input of the body.
  carried_.resize(count);
  for (size_t i = 0; i < count; ++i) {
    if (carries_[i] == by_value) carried_[i] = take_output(output + i);
  }
  for (size_t i = 0; i < count; ++i) {
    if (carries_[i] == by_swap) frame_->swap(output + i, input + i);
    if (carries_[i] == by_value) give_input(input + i, std::move(carried_[i]));
  }
}

}  // namespace tenon

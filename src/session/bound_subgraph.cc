#include "session/bound_subgraph.h"

namespace tenon {

BoundSubgraph::BoundSubgraph(const Program& program, const RunState& state, const Frame& outer)
    : program_(program), state_(state), outer_(outer), wanted_(program.output_slots().size(), true) {}

BoundSubgraph::~BoundSubgraph() {
  if (frame_) program_.give_back(std::move(frame_));
}

std::vector<Value> BoundSubgraph::run(std::vector<Value> inputs) {
  // A body without steps would never come to ask.
  state_.throw_if_cancelled();
  SmallVector<const Value*, 8> arguments;
  for (size_t i = 0; i < program_.input_slots().size(); ++i) {
    arguments.push_back(i < inputs.size() && inputs[i].defined() ? &inputs[i] : nullptr);
  }
  for (const Program::Capture& capture : program_.captures()) {
    const Value& value = outer_.value(capture.outer_slot);
    arguments.push_back(value.defined() ? &value : nullptr);
  }
  std::span<const Value* const> all{arguments.data(), arguments.size()};
  if (!frame_ || !frame_->fits(all)) {
    program_.prepare_frame(frame_, state_, all, wanted_);
    has_captures_ = false;
  }
  const size_t input_count = program_.input_slots().size();
  for (size_t i = 0; i < input_count && i < inputs.size(); ++i) {
    if (inputs[i].defined()) frame_->set_argument(i, std::move(inputs[i]));
  }
  // Values of outer graphs stay the same from one run to the next.
  for (size_t i = input_count; i < arguments.size() && !has_captures_; ++i) {
    if (arguments[i]) frame_->set_argument(i, Value(*arguments[i]));
  }
  has_captures_ = true;
  frame_->run(state_, {});
  inputs.resize(output_count());
  for (size_t i = 0; i < output_count(); ++i) inputs[i] = wanted_[i] ? frame_->take_output(i) : Value();
  frame_->clear_iteration();
  return inputs;
}

}  // namespace tenon

#include "session/bound_subgraph.h"

namespace tenon {

BoundSubgraph::BoundSubgraph(const Program& program, const RunState& state, const Frame& outer)
    : program_(program), state_(state), outer_(outer) {}

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
  program_.prepare_frame(frame_, state_, all, std::vector<bool>(output_count(), true));
  frame_->run(state_, all, {});
  std::vector<Value> outputs;
  outputs.reserve(output_count());
  for (size_t i = 0; i < output_count(); ++i) outputs.push_back(frame_->output(i));
  frame_->clear();
  return outputs;
}

}  // namespace tenon

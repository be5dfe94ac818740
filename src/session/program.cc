#include "session/program.h"

#include "base/fail.h"
#include "session/plan_cache.h"

namespace tenon {

void Program::prepare_frame(std::unique_ptr<Frame>& frame, const RunState& state,
                            std::span<const Value* const> arguments, const std::vector<bool>& wanted_outputs) const {
  PlanCache& plans = state.plans.of(*this);
  std::shared_ptr<const Plan> plan = plans.find_or_make(*this, state, arguments, wanted_outputs);
  if (frame && frame->plan() == plan) return;
  if (!frame) frame = plans.take_frame(plan);
  if (!frame) frame = std::make_unique<Frame>(*this, state);
  if (frame->plan() != plan) frame->bind(std::move(plan));
}

Value Program::on_device(int slot, const Value& content) const {
  auto constant = device_constants_.find(slot);
  return constant != device_constants_.end() ? constant->second : Value(device_->upload(content.tensor()));
}

std::vector<Value> Program::run(const RunState& state, std::span<const Value> inputs,
                                const std::vector<bool>& wanted_outputs, std::span<const Tensor> destinations) const {
  state.throw_if_cancelled();
  SmallVector<const Value*, 8> arguments;
  for (const Value& input : inputs) arguments.push_back(input.defined() ? &input : nullptr);
  std::span<const Value* const> all{arguments.data(), arguments.size()};
  // Goes back even when the run fails.
  struct Loan {
    PlanCache& plans;
    std::unique_ptr<Frame> frame;
    ~Loan() {
      if (frame) plans.give_back(std::move(frame));
    }
  } loan{state.plans.of(*this), nullptr};
  prepare_frame(loan.frame, state, all, wanted_outputs);
  for (size_t i = 0; i < all.size(); ++i) {
    if (all[i] && loan.frame->reads_argument(i)) loan.frame->set_argument(i, Value(*all[i]));
  }
  loan.frame->run(state, destinations);
  std::vector<Value> outputs(output_slots_.size());
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (!wanted_outputs[i]) continue;
    outputs[i] = loan.frame->take_output(i);
    TENON_CHECK(outputs[i].defined());
  }
  return outputs;
}

}  // namespace tenon

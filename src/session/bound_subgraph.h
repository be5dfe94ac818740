#pragma once

#include <memory>
#include <vector>

#include "session/frame.h"

namespace tenon {

// The body of a node, with the values of the outer graph that it reads.
class BoundSubgraph final : public Subgraph {
 public:
  BoundSubgraph(const Program& program, const RunState& state, const Frame& outer);
  BoundSubgraph(BoundSubgraph&&) = default;
  ~BoundSubgraph() override;

  size_t input_count() const override { return program_.input_slots().size(); }
  size_t output_count() const override { return program_.output_slots().size(); }
  bool reads_input(size_t i) const override { return program_.reads_input(i); }
  void drop_output(size_t i) override { wanted_[i] = false; }
  void give_input(size_t i, Value value) override;
  Value take_input(size_t i) override;
  void run() override;
  const Value& output(size_t i) const override { return frame_->output(i); }
  Value take_output(size_t i) override { return frame_->take_output(i); }
  void carry(size_t output, size_t input, size_t count) override;

 private:
  void arrange();

  const Program& program_;
  const RunState& state_;
  const Frame& outer_;
  std::vector<bool> wanted_;
  std::vector<Value> inputs_;          // those that the frame does not hold
  std::unique_ptr<Frame> frame_;       // of the last run, for the next one
  bool is_arranged_ = false;           // the frame is ready for the next run
  std::vector<Frame::Carry> carries_;  // by output, as the frame's plan allows
  std::vector<Value> carried_;         // on their way from output to input
  std::vector<Tensor> destinations_;   // empty, or those of outputs that stay on the device
};

}  // namespace tenon

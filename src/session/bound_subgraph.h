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
  std::vector<Value> run(std::vector<Value> inputs) override;

 private:
  const Program& program_;
  const RunState& state_;
  const Frame& outer_;
  std::vector<bool> wanted_;
  std::unique_ptr<Frame> frame_;  // of the last run, for the next one
  bool has_captures_ = false;     // the frame has the values of outer graphs
};

}  // namespace tenon

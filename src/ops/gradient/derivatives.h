#pragma once

#include <vector>

#include "ops/decomposition.h"

namespace tenon::ops {

// One node of the differentiated graph and what is known about the tensors that it computes from and to.
struct Differentiated {
  Decomposition& d;
  const ir::Node& node;
  ir::Value* gradient;  // of the node's output, which it has the shape of

  ir::Value* x(size_t i) const { return node.input(i); }
  ir::Value* y() const { return node.output(0); }
  ir::Value* add(std::string op, std::vector<ir::Value*> inputs, std::initializer_list<Setting> settings = {}) const {
    return d.add(std::move(op), std::move(inputs), settings);
  }
  // A scalar of the type of `like`.
  ir::Value* number(double value, const ir::Value* like) const;
  // The rank of a value; leaves the Gradient for later when it is not known yet.
  int rank(const ir::Value* value) const;
};

// The gradient of one input, given that of the output; null for an input that has none, such as a shape.
using Derivative = ir::Value* (*)(const Differentiated&);

struct DerivativeRule {
  const char* op;  // of ai.onnx
  std::vector<Derivative> inputs;
  bool broadcasts = false;  // the inputs' gradients have the shape of the output and are summed to that of the input
};

// Null when there is none.
const DerivativeRule* find_derivative(const ir::Node& node);
// "Add, Div, …"
std::string differentiable_operators();

// `gradient`, in whose shape `like` was broadcast, summed to the shape of `like`.
ir::Value* sum_to_shape(const Differentiated& n, ir::Value* gradient, ir::Value* like);

}  // namespace tenon::ops

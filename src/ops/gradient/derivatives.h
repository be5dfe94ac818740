#pragma once

#include <vector>

#include "ops/decomposition.h"

namespace tenon::ops {

// One node of the differentiated graph and what is known about the tensors that it computes from and to.
struct Differentiated {
  Decomposition& d;
  const ir::Node& node;
  Term gradient;  // of the node's output, which it has the shape of

  Term x(size_t i) const { return term(d, node.input(i)); }
  Term y() const { return term(d, node.output(0)); }
  // The rank of an input; leaves the Gradient for later when it is not known yet.
  int rank(size_t i) const;
  // Any tensor of the graph; leaves the Gradient for later when its type is not known yet.
  static Term term(Decomposition& d, ir::Value* value);
};

// The gradient of one input, given that of the output; null for an input that has none, such as a shape.
using Derivative = Term (*)(const Differentiated&);

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
Term sum_to_shape(Decomposition& d, Term gradient, Term like);

}  // namespace tenon::ops

#include "ops/fused_activation.h"

#include <algorithm>
#include <array>

#include "base/fail.h"

namespace tenon::ops {
namespace {

constexpr std::array<std::string_view, 9> names = {"",      "Relu",      "Clip", "Sigmoid", "Tanh",
                                                   "Swish", "HardSwish", "Gelu", "TanhGelu"};

}  // namespace

FusedActivation fused_activation(const ir::Node& node) {
  const std::string name = node.string_attribute("activation", "");
  auto found = std::ranges::find(names, name);
  if (found == names.end()) fail(ErrorCode::invalid_attribute, "activation '{}' cannot be fused", name);
  const auto kind = static_cast<FusedActivation>(found - names.begin());
  const size_t wanted = kind == FusedActivation::clip ? 2 : 0,
               given = node.floats_attribute("activation_params").size();
  if (given != wanted)
    fail(ErrorCode::invalid_attribute, "activation '{}' has {} activation_params, not {}", name, wanted, given);
  return kind;
}

Operator& with_activation(Operator& op) {
  return op.attribute("activation", ir::AttributeKind::string)
      .attribute("activation_params", ir::AttributeKind::floats);
}

Operator& with_residual_and_activation(Operator& op) { return with_activation(op.optional_input("residual", "T")); }

void check_residual_and_activation(Inference& inference, size_t i, const std::optional<SymbolicShape>& output) {
  fused_activation(inference.node());
  if (!inference.has_shape(i) || !output) return;
  inference.require_rank(i, static_cast<int>(output->size()));
  for (size_t axis = 0; axis < output->size(); ++axis)
    inference.equal(inference.shape(i)[axis], (*output)[axis], "the sizes of residual and output");
}

Term activated(Decomposition& d, Term y) {
  const std::vector<float> parameters = d.node().floats_attribute("activation_params");
  switch (fused_activation(d.node())) {
    case FusedActivation::none:
      return y;
    case FusedActivation::relu:
      return d.add("Relu", {y});
    case FusedActivation::clip:
      return d.add("Clip", {y, y.number(parameters[0]), y.number(parameters[1])});
    case FusedActivation::sigmoid:
      return sigmoid(y);
    case FusedActivation::tanh:
      return tanh(y);
    case FusedActivation::swish:
      return y * sigmoid(y);
    case FusedActivation::hard_swish:
      return d.add("HardSwish", {y});
    case FusedActivation::gelu:
      return d.add("Gelu", {y});
    case FusedActivation::tanh_gelu:
      return d.add("Gelu", {y}, {{"approximate", std::string("tanh")}});
  }
  return y;
}

void output_with_residual_and_activation(Decomposition& d, Term y, size_t i) {
  if (d.has_input(i)) {
    bool known = d.known_rank(i) >= 0;
    for (int axis = 0; known && axis < d.known_rank(i); ++axis) known = d.known_size(i, axis) >= 0;
    // Only a run can tell then, and Add would broadcast.
    Term residual = known ? d.input(i) : reshape(d.input(i), shape_of(y));
    y = y + residual;
  }
  d.output(0, activated(d, y));
}

}  // namespace tenon::ops

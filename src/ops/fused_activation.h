// What the fused operators of domain tenon do to their result: add a residual, then apply an activation. The attribute
// `activation` names the operator that it is (none, when it is left out); `activation_params` holds lowest and highest
// of Clip.
#pragma once

#include "ops/decomposition.h"
#include "ops/inference.h"
#include "ops/operator.h"

namespace tenon::ops {

enum class FusedActivation : unsigned char { none, relu, clip, sigmoid, tanh, swish, hard_swish, gelu, tanh_gelu };

// Throws invalid_attribute for a name that is none of them, or for wrong parameters.
FusedActivation fused_activation(const ir::Node& node);

// Adds the attributes; with the residual as an optional input before.
Operator& with_activation(Operator& op);
Operator& with_residual_and_activation(Operator& op);
// Checks the attributes, and that input i, the residual, has the shape that was inferred for the output.
void check_residual_and_activation(Inference& inference, size_t i, const std::optional<SymbolicShape>& output);
// y activated.
Term activated(Decomposition& d, Term y);
// The output: y, plus input i if there is one, activated.
void output_with_residual_and_activation(Decomposition& d, Term y, size_t i);

}  // namespace tenon::ops

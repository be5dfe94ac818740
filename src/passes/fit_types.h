#pragma once

#include <string>

#include "ir/graph.h"
#include "ops/operator.h"

namespace tenon::passes {

enum class Fit : uint8_t { as_it_is, rewritten, blocked };

// Whether the types of the node's inputs and outputs are ones that a version of its operator allows, which belongs to
// `opset`. Where they are not, and the operator computes the same in a wider type, puts Cast nodes around it. Else
// `reason` says what is in the way.
Fit fit_types(ir::Node& node, const ops::Operator& op, int version, int64_t opset, std::string& reason);

}  // namespace tenon::passes

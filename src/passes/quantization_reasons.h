// Why quantization was not made part of a step that computes with integers.
#pragma once

#include <string>

#include "ir/graph.h"

namespace tenon::passes {

// A sentence about a QuantizeLinear or DequantizeLinear that is left when all passes have run: what keeps it from being
// computed along with its neighbours, or that it is a border of the model. Empty for other nodes.
std::string why_quantization_stays(const ir::Node& node);

}  // namespace tenon::passes

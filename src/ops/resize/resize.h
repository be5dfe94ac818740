#pragma once

#include <vector>

#include "ops/inference.h"

namespace tenon::ops {

// The axes that scales and sizes speak of.
std::vector<int> resized_axes(const ir::Node& node, int rank);

// `scale`; throws unless it is positive and finite.
float checked_scale(float scale);

}  // namespace tenon::ops

#pragma once

#include "ops/elementwise.h"

namespace tenon::ops {

// Max and Min of two inputs.
extern const LoopTable<BinaryLoop> maximum_loops, minimum_loops;

}  // namespace tenon::ops

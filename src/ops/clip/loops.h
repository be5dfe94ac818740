#pragma once

#include "ops/elementwise.h"

namespace tenon::ops {

// Clip of float32 between bounds.a and bounds.b.
void clip_floats(const void* x, void* y, int64_t n, const Parameters& bounds);

}  // namespace tenon::ops

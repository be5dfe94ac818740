// Elements of quantized types as floats and back.
#pragma once

#include <cstdint>

#include "tenon/tensor.h"

namespace tenon::ops {

// to[i] = element first + i of `from`, which has any type that quantization knows.
void load_as_float(const Tensor& from, int64_t first, int64_t count, float* to);

// Element first + i of `to` = from[i]: integers are rounded to even and saturate; floats below 16 bits saturate when
// asked to. Elements of types below 8 bits share bytes with their neighbours.
void store_from_float(const float* from, Tensor& to, int64_t first, int64_t count, bool saturate = true);

}  // namespace tenon::ops

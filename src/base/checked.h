#pragma once

#include <cstdint>

#include "base/fail.h"

namespace tenon {

// Arithmetic on sizes that come from a model or an input: throws ErrorCode::overflow instead of wrapping.
inline int64_t checked_add(int64_t a, int64_t b) {
  int64_t result;
  if (__builtin_add_overflow(a, b, &result)) fail(ErrorCode::overflow, "{} + {} does not fit in 64 bits", a, b);
  return result;
}

inline int64_t checked_mul(int64_t a, int64_t b) {
  int64_t result;
  if (__builtin_mul_overflow(a, b, &result)) fail(ErrorCode::overflow, "{} * {} does not fit in 64 bits", a, b);
  return result;
}

}  // namespace tenon

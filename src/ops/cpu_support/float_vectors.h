// Loops with comparisons, which the compiler does not vectorise well by itself.
#pragma once

#include <cstdint>
#include <cstring>

#include "kernels/simd/extreme.h"

namespace tenon::ops {

using FloatVector = kernels::VectorOf<float>::Type;

inline constexpr int float_lanes = sizeof(FloatVector) / sizeof(float);

// Calls visit(FloatVector) for x[0…n); in the last one, elements that are missing are 0.
template <typename Visit>
void each_vector(const float* x, int64_t n, Visit visit) {
  FloatVector value;
  int64_t i = 0;
  for (; i + float_lanes <= n; i += float_lanes) {
    std::memcpy(&value, x + i, sizeof value);
    visit(value);
  }
  if (i == n) return;
#ifdef __AVX2__
  using Lanes = kernels::VectorOf<int32_t>::Type;
  const Lanes is_there = Lanes{0, 1, 2, 3, 4, 5, 6, 7} < static_cast<int32_t>(n - i);
  value = __builtin_ia32_maskloadps256(reinterpret_cast<const FloatVector*>(x + i), is_there);
#else
  value = FloatVector{};
  std::memcpy(&value, x + i, static_cast<size_t>(n - i) * sizeof(float));
#endif
  visit(value);
}

// y[i] = function(x[i]), where function takes and returns a FloatVector; y may be x.
template <typename Function>
void map_vectors(const float* x, float* y, int64_t n, Function function) {
  constexpr int at_once = 4;
  FloatVector value[at_once];
  int64_t i = 0;
  for (; i + at_once * float_lanes <= n; i += at_once * float_lanes) {
#pragma GCC unroll 4
    for (int k = 0; k < at_once; ++k) {
      std::memcpy(&value[k], x + i + k * float_lanes, sizeof value[k]);
      value[k] = function(value[k]);
    }
#pragma GCC unroll 4
    for (int k = 0; k < at_once; ++k) std::memcpy(y + i + k * float_lanes, &value[k], sizeof value[k]);
  }
  for (; i + float_lanes <= n; i += float_lanes) {
    std::memcpy(&value[0], x + i, sizeof value[0]);
    value[0] = function(value[0]);
    std::memcpy(y + i, &value[0], sizeof value[0]);
  }
  for (; i < n; ++i) y[i] = function(FloatVector{} + x[i])[0];
}

// y[i] = function(a[i], b[i]); y may be a or b.
template <typename Function>
void map_vectors(const float* a, const float* b, float* y, int64_t n, Function function) {
  FloatVector p, q;
  int64_t i = 0;
  for (; i + float_lanes <= n; i += float_lanes) {
    std::memcpy(&p, a + i, sizeof p);
    std::memcpy(&q, b + i, sizeof q);
    p = function(p, q);
    std::memcpy(y + i, &p, sizeof p);
  }
  for (; i < n; ++i) y[i] = function(FloatVector{} + a[i], FloatVector{} + b[i])[0];
}

inline FloatVector vector_at(const float* x) {
  FloatVector value;
  std::memcpy(&value, x, sizeof value);
  return value;
}

// a * b + c, rounded once where that is one instruction.
inline FloatVector multiply_add(FloatVector a, FloatVector b, FloatVector c) {
#if defined(__FMA__)
  asm("vfmadd231ps %2, %1, %0" : "+x"(c) : "x"(a), "xm"(b));
  return c;
#elif defined(__aarch64__)
  asm("fmla %0.4s, %1.4s, %2.4s" : "+w"(c) : "w"(a), "w"(b));
  return c;
#else
  return a * b + c;
#endif
}

using QuarterVector [[gnu::vector_size(16)]] = float;

// Lanes that are four apart, added up.
inline QuarterVector folded(FloatVector value) {
  QuarterVector sum, next;
  std::memcpy(&sum, &value, sizeof sum);
  for (size_t at = sizeof sum; at < sizeof value; at += sizeof sum) {
    std::memcpy(&next, reinterpret_cast<const char*>(&value) + at, sizeof next);
    sum += next;
  }
  return sum;
}

// The sum of all lanes.
inline float sum_of(FloatVector value) {
  QuarterVector sum = folded(value);
  sum += __builtin_shufflevector(sum, sum, 2, 3, 0, 1);
  return sum[0] + sum[1];
}

// The sums of all lanes of one vector, or of four.
inline QuarterVector sums_of(const FloatVector (&values)[1]) { return QuarterVector{sum_of(values[0])}; }
inline QuarterVector sums_of(const FloatVector (&values)[4]) {
  const auto pair = [](QuarterVector a, QuarterVector b) {
    return __builtin_shufflevector(a, b, 0, 4, 1, 5) + __builtin_shufflevector(a, b, 2, 6, 3, 7);
  };
  const QuarterVector low = pair(folded(values[0]), folded(values[1])),
                      high = pair(folded(values[2]), folded(values[3]));
  return __builtin_shufflevector(low, high, 0, 1, 4, 5) + __builtin_shufflevector(low, high, 2, 3, 6, 7);
}

using IntVector = kernels::VectorOf<int32_t>::Type;

// Where `mask`, whose lanes are 0 or -1, `a`, else `b`. Conditions would be taken apart lane by lane when nested.
inline FloatVector choose(IntVector mask, FloatVector a, FloatVector b) {
  return (FloatVector)(((IntVector)a & mask) | ((IntVector)b & ~mask));
}

// Within [0, 1]; NaN stays.
inline FloatVector unit_clamp(FloatVector value) {
  const FloatVector one = FloatVector{} + 1.0f;
  return kernels::bounded_by<false>(one, kernels::bounded_by<true>(FloatVector{}, value));
}

}  // namespace tenon::ops

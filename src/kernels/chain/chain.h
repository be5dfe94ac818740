// Chains of cheap operations on float arrays, whose results in between stay in registers.
#pragma once

#include <cstdint>
#include <span>

#include "kernels/dispatch.h"

namespace tenon::kernels {

// x is what the step before made, b the step's operand, which the first ten have. Comparisons with NaN are false.
enum class ChainOperation : uint8_t {
  add,            // x + b
  subtract,       // x - b
  subtract_from,  // b - x
  multiply,       // x * b
  divide,         // x / b
  divide_into,    // b / x
  minimum,        // x < b or NaN ? x : b
  minimum_of,     // b < x or NaN ? b : x
  maximum,        // x > b or NaN ? x : b
  maximum_of,     // b > x or NaN ? b : x
  negate,         // -x
  absolute,       // |x|
  relu,           // x > 0 or NaN ? x : 0
  leaky_relu,     // x < 0 ? low * x : x
  clip,           // x < low ? low : x, then that > high ? high : that; of two zeros, either
  square,         // x * x
  square_root,
  reciprocal,  // 1 / x
};

struct ChainStep {
  ChainOperation operation;
  const float* operand = nullptr;  // of those that have one: element i is operand[i * stride]
  int64_t stride = 0;              // 1 or 0
  float low = 0, high = 0;
};

// y[i] = what the steps make of x[i], one after the other, for i < n. y may be x or an operand. Each step gives the
// bits that the formula beside its name gives. Single-threaded: callers split the arrays.
void f32_chain(const float* x, std::span<const ChainStep> steps, float* y, int64_t n);

struct ChainKernels {
  Isa isa;
  void (*run)(const float* x, std::span<const ChainStep> steps, float* y, int64_t n);
};

TENON_WIDE_ISA_TABLES(ChainKernels, chain_kernels)

}  // namespace tenon::kernels

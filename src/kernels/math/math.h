// Functions of float arrays, a vector at a time.
#pragma once

#include <cstdint>

#include "kernels/dispatch.h"

namespace tenon::kernels {

// The instruction set these functions use now.
Isa math_isa();

// y[i] = f(x[i]) for i < n; y may be x. Within a few units in the last place of the exact result (test.cc says how
// many for each); NaN gives NaN and infinities give the limit. Single-threaded: callers split the array.
void f32_exp(const float* x, float* y, int64_t n);
void f32_expm1(const float* x, float* y, int64_t n);              // exp(x) - 1
void f32_expm1_nonpositive(const float* x, float* y, int64_t n);  // of x below 0, else 0
void f32_log(const float* x, float* y, int64_t n);
void f32_tanh(const float* x, float* y, int64_t n);
void f32_sigmoid(const float* x, float* y, int64_t n);
void f32_erf(const float* x, float* y, int64_t n);
void f32_gelu(const float* x, float* y, int64_t n);        // x / 2 * (1 + erf(x / sqrt(2)))
void f32_gelu_tanh(const float* x, float* y, int64_t n);   // the approximation with tanh
void f32_silu(const float* x, float* y, int64_t n);        // x * sigmoid(x); 0 where x is below -44
void f32_hard_swish(const float* x, float* y, int64_t n);  // x * (x / 6 + 1 / 2, between 0 and 1)
void f32_softplus(const float* x, float* y, int64_t n);    // log(1 + exp(x))
void f32_sin(const float* x, float* y, int64_t n);
void f32_cos(const float* x, float* y, int64_t n);
void f32_tan(const float* x, float* y, int64_t n);
void f32_asin(const float* x, float* y, int64_t n);
void f32_acos(const float* x, float* y, int64_t n);
void f32_atan(const float* x, float* y, int64_t n);
void f32_sinh(const float* x, float* y, int64_t n);
void f32_cosh(const float* x, float* y, int64_t n);
void f32_asinh(const float* x, float* y, int64_t n);
void f32_acosh(const float* x, float* y, int64_t n);
void f32_atanh(const float* x, float* y, int64_t n);
void f32_reciprocal(const float* x, float* y, int64_t n);  // rounded as 1 / x is

// The same for half precision floats, within one unit in the last place.
void f16_erf(const uint16_t* x, uint16_t* y, int64_t n);
void f16_gelu(const uint16_t* x, uint16_t* y, int64_t n);  // and 1e-6
void f16_gelu_tanh(const uint16_t* x, uint16_t* y, int64_t n);
void f16_tanh(const uint16_t* x, uint16_t* y, int64_t n);
void f16_sigmoid(const uint16_t* x, uint16_t* y, int64_t n);
void f16_silu(const uint16_t* x, uint16_t* y, int64_t n);
void f16_hard_swish(const uint16_t* x, uint16_t* y, int64_t n);

// The same for doubles.
void f64_exp(const double* x, double* y, int64_t n);
void f64_sin(const double* x, double* y, int64_t n);
void f64_cos(const double* x, double* y, int64_t n);

// z[i] = x[i * x_step] to the power y[i * y_step], for i < n; steps are 0 or 1, and z may be x or y where that step
// is 1.
struct FloatPowers {
  const float* x;
  int64_t x_step;
  const float* y;
  int64_t y_step;
  float* z;
  int64_t n;
};
void f32_pow(const FloatPowers& powers);

struct MathKernels {
  using Function = void (*)(const float* x, float* y, int64_t n);
  Isa isa;
  Function exp, expm1, expm1_nonpositive, log, tanh, sigmoid, erf, gelu, gelu_tanh, silu, hard_swish, softplus, sin,
      cos, tan, asin, acos, atan, sinh, cosh, asinh, acosh, atanh, reciprocal;
  using HalfFunction = void (*)(const uint16_t* x, uint16_t* y, int64_t n);
  HalfFunction half_erf, half_gelu, half_gelu_tanh, half_tanh, half_sigmoid, half_silu, half_hard_swish;
  struct DoubleKernels {
    using Function = void (*)(const double* x, double* y, int64_t n);
    Function exp, sin, cos;
    void (*pow)(const FloatPowers&);  // of floats, by doubles
  } of_doubles;
};

TENON_WIDE_ISA_TABLES(MathKernels, math_kernels)

}  // namespace tenon::kernels

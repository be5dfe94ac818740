#include "kernels/math/math.h"

#include "kernels/math/half_table.h"

namespace tenon::kernels {
namespace {

// Vectors of four or eight floats take longer to compute a function on Arm than a table to look it up, 0.3 ns a number.
template <void (*function)(const float*, float*, int64_t)>
void of_halves(MathKernels::HalfFunction computed, const uint16_t* x, uint16_t* y, int64_t n) {
  if (const Isa isa = math_isa(); isa != Isa::neon && isa != Isa::sve256) return computed(x, y, n);
  static const HalfTable table(function);
  table.apply(x, y, n);
}

}  // namespace

Isa math_isa() { return math_kernels().isa; }

void f32_exp(const float* x, float* y, int64_t n) { math_kernels().exp(x, y, n); }
void f32_expm1(const float* x, float* y, int64_t n) { math_kernels().expm1(x, y, n); }
void f32_expm1_nonpositive(const float* x, float* y, int64_t n) { math_kernels().expm1_nonpositive(x, y, n); }
void f32_log(const float* x, float* y, int64_t n) { math_kernels().log(x, y, n); }
void f32_tanh(const float* x, float* y, int64_t n) { math_kernels().tanh(x, y, n); }
void f32_sigmoid(const float* x, float* y, int64_t n) { math_kernels().sigmoid(x, y, n); }
void f32_erf(const float* x, float* y, int64_t n) { math_kernels().erf(x, y, n); }
void f32_gelu(const float* x, float* y, int64_t n) { math_kernels().gelu(x, y, n); }
void f32_gelu_tanh(const float* x, float* y, int64_t n) { math_kernels().gelu_tanh(x, y, n); }
void f32_silu(const float* x, float* y, int64_t n) { math_kernels().silu(x, y, n); }
void f32_hard_swish(const float* x, float* y, int64_t n) { math_kernels().hard_swish(x, y, n); }
void f32_softplus(const float* x, float* y, int64_t n) { math_kernels().softplus(x, y, n); }
void f32_sin(const float* x, float* y, int64_t n) { math_kernels().sin(x, y, n); }
void f32_cos(const float* x, float* y, int64_t n) { math_kernels().cos(x, y, n); }
void f32_tan(const float* x, float* y, int64_t n) { math_kernels().tan(x, y, n); }
void f32_asin(const float* x, float* y, int64_t n) { math_kernels().asin(x, y, n); }
void f32_acos(const float* x, float* y, int64_t n) { math_kernels().acos(x, y, n); }
void f32_atan(const float* x, float* y, int64_t n) { math_kernels().atan(x, y, n); }
void f32_sinh(const float* x, float* y, int64_t n) { math_kernels().sinh(x, y, n); }
void f32_cosh(const float* x, float* y, int64_t n) { math_kernels().cosh(x, y, n); }
void f32_asinh(const float* x, float* y, int64_t n) { math_kernels().asinh(x, y, n); }
void f32_acosh(const float* x, float* y, int64_t n) { math_kernels().acosh(x, y, n); }
void f32_atanh(const float* x, float* y, int64_t n) { math_kernels().atanh(x, y, n); }
void f32_reciprocal(const float* x, float* y, int64_t n) { math_kernels().reciprocal(x, y, n); }

void f16_erf(const uint16_t* x, uint16_t* y, int64_t n) { of_halves<f32_erf>(math_kernels().half_erf, x, y, n); }
void f16_gelu(const uint16_t* x, uint16_t* y, int64_t n) { of_halves<f32_gelu>(math_kernels().half_gelu, x, y, n); }
void f16_gelu_tanh(const uint16_t* x, uint16_t* y, int64_t n) {
  of_halves<f32_gelu_tanh>(math_kernels().half_gelu_tanh, x, y, n);
}
void f16_tanh(const uint16_t* x, uint16_t* y, int64_t n) { of_halves<f32_tanh>(math_kernels().half_tanh, x, y, n); }
void f16_sigmoid(const uint16_t* x, uint16_t* y, int64_t n) {
  of_halves<f32_sigmoid>(math_kernels().half_sigmoid, x, y, n);
}
void f16_silu(const uint16_t* x, uint16_t* y, int64_t n) { of_halves<f32_silu>(math_kernels().half_silu, x, y, n); }
void f16_hard_swish(const uint16_t* x, uint16_t* y, int64_t n) {
  of_halves<f32_hard_swish>(math_kernels().half_hard_swish, x, y, n);
}

void f64_exp(const double* x, double* y, int64_t n) { math_kernels().of_doubles.exp(x, y, n); }
void f64_sin(const double* x, double* y, int64_t n) { math_kernels().of_doubles.sin(x, y, n); }
void f64_cos(const double* x, double* y, int64_t n) { math_kernels().of_doubles.cos(x, y, n); }

void f32_pow(const FloatPowers& powers) { math_kernels().of_doubles.pow(powers); }

}  // namespace tenon::kernels

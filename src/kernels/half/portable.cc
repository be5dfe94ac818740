#include "kernels/half/half.h"
#include "tenon/scalar.h"

namespace tenon::kernels {
namespace {

void to_half(const float* x, uint16_t* y, int64_t n) {
  for (int64_t i = 0; i < n; ++i) y[i] = float16(x[i]).bits;
}

void to_float(const uint16_t* x, float* y, int64_t n) {
  for (int64_t i = 0; i < n; ++i) y[i] = static_cast<float>(float16::from_bits(x[i]));
}

}  // namespace

constexpr HalfKernels half_kernels_portable = {Isa::portable, to_half, to_float};

}  // namespace tenon::kernels

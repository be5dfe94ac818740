#include "kernels/half/half.h"

namespace tenon::kernels {

void f32_to_f16(const float* x, uint16_t* y, int64_t n) { half_kernels().to_half(x, y, n); }
void f16_to_f32(const uint16_t* x, float* y, int64_t n) { half_kernels().to_float(x, y, n); }

}  // namespace tenon::kernels

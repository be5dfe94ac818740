#include "kernels/channel_affine/channel_affine.h"

namespace tenon::kernels {

void f32_affine(const float* x, const float* scale, const float* shift, float lo, float hi, float* y, int64_t n) {
  affine_kernels().run(x, scale, shift, lo, hi, y, n);
}

}  // namespace tenon::kernels

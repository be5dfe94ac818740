#include "kernels/channel_affine/channel_affine.h"

namespace tenon::kernels {

void f32_affine(const float* x, const float* scale, const float* shift, float lo, float hi, float* y, int64_t n) {
  affine_kernels().run(x, scale, shift, lo, hi, y, n);
}

void f32_affine_row(const float* x, float scale, float shift, float* y, int64_t n) {
  affine_kernels().run_row(x, scale, shift, y, n);
}

}  // namespace tenon::kernels

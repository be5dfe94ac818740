#include "kernels/channel_affine/channel_affine.h"

namespace tenon::kernels {

void f32_affine(const float* x, const float* scale, const float* shift, float lo, float hi, float* y, int64_t n) {
  affine_kernels().run({x, scale, shift, lo, hi, y, n, 1}, 0, 1);
}

void f32_affine_planes(const AffinePlanes& planes, int64_t begin, int64_t end) {
  affine_kernels().run(planes, begin, end);
}

}  // namespace tenon::kernels

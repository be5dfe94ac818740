#include "kernels/quantize/quantize.h"

#include <algorithm>
#include <cmath>

namespace tenon::kernels {

void quantize(const float* x, uint8_t* y, int64_t n, float scale, float zero) {
  quantize_kernels().to_uint8(x, y, n, scale, zero);
}
void quantize(const float* x, int8_t* y, int64_t n, float scale, float zero) {
  quantize_kernels().to_int8(x, y, n, scale, zero);
}
void quantize(const float* x, uint16_t* y, int64_t n, float scale, float zero) {
  quantize_kernels().to_uint16(x, y, n, scale, zero);
}
void quantize(const float* x, int16_t* y, int64_t n, float scale, float zero) {
  quantize_kernels().to_int16(x, y, n, scale, zero);
}

std::pair<float, float> range_with_zero(const float* x, int64_t n) { return quantize_kernels().range(x, n); }

ByteQuantization quantization_of(std::pair<float, float> range_with_zero) {
  const auto [low, high] = range_with_zero;
  const float scale = low == high ? 1.0f / 255 : (high - low) / 255;
  const float below = 0 - low / scale;
  return {scale, below == below ? std::nearbyint(std::clamp(below, 0.0f, 255.0f)) : 0};
}

}  // namespace tenon::kernels

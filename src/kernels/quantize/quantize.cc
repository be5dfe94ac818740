#include "kernels/quantize/quantize.h"

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

}  // namespace tenon::kernels

#include "kernels/quantize/requantize.h"

namespace tenon::kernels {

void requantize(const int32_t* x, int32_t addend, Scales scales, uint8_t zero, uint8_t* y, int64_t n) {
  requantize_kernels().ints_to_uint8(x, addend, scales, zero, y, n);
}
void requantize(const int32_t* x, int32_t addend, Scales scales, int8_t zero, int8_t* y, int64_t n) {
  requantize_kernels().ints_to_int8(x, addend, scales, zero, y, n);
}
void requantize(const float* x, int32_t addend, Scales scales, uint8_t zero, uint8_t* y, int64_t n) {
  requantize_kernels().floats_to_uint8(x, addend, scales, zero, y, n);
}
void requantize(const float* x, int32_t addend, Scales scales, int8_t zero, int8_t* y, int64_t n) {
  requantize_kernels().floats_to_int8(x, addend, scales, zero, y, n);
}

}  // namespace tenon::kernels

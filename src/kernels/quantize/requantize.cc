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
void requantize_rows(const SumRows& x, Scales scales, uint8_t zero, uint8_t* y, int64_t ldy) {
  requantize_kernels().rows_to_uint8(x, scales, zero, y, ldy);
}
void requantize_rows(const SumRows& x, Scales scales, int8_t zero, int8_t* y, int64_t ldy) {
  requantize_kernels().rows_to_int8(x, scales, zero, y, ldy);
}
void requantize_and_add_rows(const SumRows& x, Scales scales, const AddedCodes& added, uint8_t zero, uint8_t* y,
                             int64_t ldy) {
  requantize_kernels().rows_and_add_to_uint8(x, scales, added, zero, y, ldy);
}
void requantize_and_add_rows(const SumRows& x, Scales scales, const AddedCodes& added, int8_t zero, int8_t* y,
                             int64_t ldy) {
  requantize_kernels().rows_and_add_to_int8(x, scales, added, zero, y, ldy);
}
void scale_rows(const SumRows& x, Scales scales, const float* bias, float* y, int64_t ldy) {
  requantize_kernels().rows_to_floats(x, scales, bias, y, ldy);
}

}  // namespace tenon::kernels

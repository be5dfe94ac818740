#include "kernels/quantize/codes.h"

#include <algorithm>

namespace tenon::kernels {
namespace {

template <class T>
void sum_rows(const T* rows, int64_t count, int64_t n, int32_t* __restrict sums) {
  // Sums of so many codes fit 16 bits.
  constexpr int64_t at_once = 128, block = 256;
  for (int64_t first = 0; first < n; first += block) {
    const int64_t size = std::min(block, n - first);
    for (int64_t row = 0; row < count; row += at_once) {
      int16_t short_sums[block] = {};
      uint16_t long_sums[block] = {};
      for (int64_t i = row; i < std::min(count, row + at_once); ++i) {
        const T* from = rows + i * n + first;
        if constexpr (T(-1) < T(0)) {
          for (int64_t c = 0; c < size; ++c) short_sums[c] = static_cast<int16_t>(short_sums[c] + from[c]);
        } else {
          for (int64_t c = 0; c < size; ++c) long_sums[c] = static_cast<uint16_t>(long_sums[c] + from[c]);
        }
      }
      for (int64_t c = 0; c < size; ++c) sums[first + c] += short_sums[c] + long_sums[c];
    }
  }
}

template <class T>
void greater_of(const T* __restrict x, T* __restrict y, int64_t n) {
  for (int64_t i = 0; i < n; ++i) y[i] = std::max(x[i], y[i]);
}

}  // namespace

void add_codes(const CodeArithmetic& arithmetic, Codes<uint8_t> a, Codes<uint8_t> b, uint8_t* y, int64_t n) {
  code_kernels().add_uint8(arithmetic, a, b, y, n);
}
void add_codes(const CodeArithmetic& arithmetic, Codes<int8_t> a, Codes<int8_t> b, int8_t* y, int64_t n) {
  code_kernels().add_int8(arithmetic, a, b, y, n);
}
void multiply_codes(const CodeArithmetic& arithmetic, Codes<uint8_t> a, Codes<uint8_t> b, uint8_t* y, int64_t n) {
  code_kernels().multiply_uint8(arithmetic, a, b, y, n);
}
void multiply_codes(const CodeArithmetic& arithmetic, Codes<int8_t> a, Codes<int8_t> b, int8_t* y, int64_t n) {
  code_kernels().multiply_int8(arithmetic, a, b, y, n);
}
void look_up_codes(const uint8_t* table, const uint8_t* x, uint8_t* y, int64_t n) {
  code_kernels().look_up(table, x, y, n);
}
void sum_codes(const uint8_t* rows, int64_t count, int64_t n, int32_t* sums) { sum_rows(rows, count, n, sums); }
void sum_codes(const int8_t* rows, int64_t count, int64_t n, int32_t* sums) { sum_rows(rows, count, n, sums); }
void flip_codes(const uint8_t* x, uint8_t* y, int64_t n) {
  for (int64_t i = 0; i < n; ++i) y[i] = static_cast<uint8_t>(x[i] ^ 0x80);
}
void take_greater(const uint8_t* x, uint8_t* y, int64_t n) { greater_of(x, y, n); }
void take_greater(const int8_t* x, int8_t* y, int64_t n) { greater_of(x, y, n); }

}  // namespace tenon::kernels

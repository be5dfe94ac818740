#include "kernels/quantize/codes.h"

#include <algorithm>
#include <cstring>

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

// `Count` vectors of a row from `first` on, in registers while all rows pass by.
template <int Count, class T>
void greatest_vectors(const T* const* rows, int64_t count, int64_t first, T* y) {
  using V [[gnu::vector_size(16)]] = T;
  const auto load = [first](const T* row, int k) {
    V v;
    std::memcpy(&v, row + first + k * 16, sizeof v);
    return v;
  };
  V best[Count];
#pragma GCC unroll 4
  for (int k = 0; k < Count; ++k) best[k] = load(rows[0], k);
  for (int64_t row = 1; row < count; ++row) {
#pragma GCC unroll 4
    for (int k = 0; k < Count; ++k) {
      const V other = load(rows[row], k);
      best[k] = best[k] > other ? best[k] : other;
    }
  }
#pragma GCC unroll 4
  for (int k = 0; k < Count; ++k) std::memcpy(y + first + k * 16, &best[k], sizeof(V));
}

template <class T>
void greatest_of(const T* const* rows, int64_t count, int64_t n, T* y) {
  constexpr int64_t width = 16;
  int64_t i = 0;
  for (; i + 4 * width <= n; i += 4 * width) greatest_vectors<4>(rows, count, i, y);
  for (; i + width <= n; i += width) greatest_vectors<1>(rows, count, i, y);
  if (i < n && n >= width) return greatest_vectors<1>(rows, count, n - width, y);
  for (; i < n; ++i) {
    y[i] = rows[0][i];
    for (int64_t row = 1; row < count; ++row) y[i] = std::max(y[i], rows[row][i]);
  }
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
void greatest_codes(const uint8_t* const* rows, int64_t count, int64_t n, uint8_t* y) {
  greatest_of(rows, count, n, y);
}
void greatest_codes(const int8_t* const* rows, int64_t count, int64_t n, int8_t* y) { greatest_of(rows, count, n, y); }

}  // namespace tenon::kernels

// Rows of floats to panels; every instruction set says how it rounds a group of them.
#pragma once

#include <algorithm>
#include <cstdint>

namespace tenon::kernels {

// Convert::group rounds Convert::group_size floats.
template <class Convert, int Rows>
void pack_bf16_rows(const float* from, int64_t ld, int64_t rows, int64_t k, uint16_t* to) {
  constexpr int group = Convert::group_size, step = Rows * group;
  for (int64_t row = 0; row < Rows; ++row, from += ld, to += group) {
    const int64_t whole = row < rows ? k / group : 0, groups = (k + group - 1) / group;
    for (int64_t q = 0; q < whole; ++q) Convert::group(from + q * group, to + q * step);
    for (int64_t q = whole; q < groups; ++q) {
      float rest[group] = {};
      if (row < rows) std::copy_n(from + q * group, k - q * group, rest);
      Convert::group(rest, to + q * step);
    }
  }
}

}  // namespace tenon::kernels

// bfloat16 as the upper half of a float.
#pragma once

#include <bit>
#include <cstdint>

namespace tenon::kernels {

// To nearest, ties to even; NaN stays NaN.
inline uint16_t to_bf16(float x) {
  const auto bits = std::bit_cast<uint32_t>(x);
  if (x != x) return static_cast<uint16_t>(bits >> 16 | 0x40);
  return static_cast<uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

inline float from_bf16(uint16_t x) { return std::bit_cast<float>(static_cast<uint32_t>(x) << 16); }

}  // namespace tenon::kernels

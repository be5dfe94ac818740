#pragma once

#include <cstdint>
#include <cstring>

namespace tenon::kernels {

// Byte j of word i and byte i of word j change places.
inline void transpose_bytes(uint64_t (&words)[8]) {
  constexpr uint64_t masks[3] = {0x00000000ffffffff, 0x0000ffff0000ffff, 0x00ff00ff00ff00ff};
#pragma GCC unroll 3
  for (int level = 0; level < 3; ++level) {
    const int distance = 4 >> level, bits = 32 >> level;
#pragma GCC unroll 8
    for (int i = 0; i < 8; ++i) {
      if (i & distance) continue;
      const uint64_t moved = ((words[i] >> bits) ^ words[i + distance]) & masks[level];
      words[i + distance] ^= moved;
      words[i] ^= moved << bits;
    }
  }
}

// Four times 16 bytes, 4 from each of four places at a time: to[g * stride…] has bytes 4 * g… of all of them, XORed
// with `flip`.
inline void interleave_by_fours(const uint8_t* const* from, int64_t offset, uint8_t flip, uint8_t* to, int64_t stride) {
  using Words [[gnu::vector_size(16)]] = uint32_t;
  Words in[4], out[4];
  for (int i = 0; i < 4; ++i) {
    std::memcpy(&in[i], from[i] + offset, 16);
    in[i] ^= 0x01010101u * flip;
  }
  const Words a = __builtin_shufflevector(in[0], in[1], 0, 4, 1, 5),
              b = __builtin_shufflevector(in[2], in[3], 0, 4, 1, 5);
  const Words c = __builtin_shufflevector(in[0], in[1], 2, 6, 3, 7),
              d = __builtin_shufflevector(in[2], in[3], 2, 6, 3, 7);
  out[0] = __builtin_shufflevector(a, b, 0, 1, 4, 5);
  out[1] = __builtin_shufflevector(a, b, 2, 3, 6, 7);
  out[2] = __builtin_shufflevector(c, d, 0, 1, 4, 5);
  out[3] = __builtin_shufflevector(c, d, 2, 3, 6, 7);
  for (int i = 0; i < 4; ++i) std::memcpy(to + i * stride, &out[i], 16);
}

}  // namespace tenon::kernels

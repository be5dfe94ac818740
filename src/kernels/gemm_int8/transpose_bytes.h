#pragma once

#include <cstdint>

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

}  // namespace tenon::kernels

// Depthwise convolution with NEON's dot products.
// Internal linkage: it belongs to the files of its instruction set alone.
#pragma once

#include <arm_neon.h>

#include <cstring>

#include "kernels/conv_nhwc/neon_codes.h"
#include "kernels/conv_nhwc/tile.h"

namespace tenon::kernels {
namespace {

// The first bytes of a register, and zeros.
template <int Bytes>
[[gnu::always_inline]] inline int8x16_t load_bytes(const uint8_t* from) {
  if constexpr (Bytes == 16) return vreinterpretq_s8_u8(vld1q_u8(from));
  if constexpr (Bytes == 8) return vreinterpretq_s8_u8(vcombine_u8(vld1_u8(from), vdup_n_u8(0)));
  uint32_t four;
  std::memcpy(&four, from, sizeof four);
  return vreinterpretq_s8_u32(vsetq_lane_u32(four, vdupq_n_u32(0), 0));
}

struct SignedDot {
  [[gnu::always_inline]] static int32x4_t add(int32x4_t sums, int8x16_t pixels, int8x16_t weights) {
    return vdotq_s32(sums, pixels, weights);
  }
};

// `Bytes` channels from `c` on, at most nhwc_lanes.
template <int Outputs, int Bytes, class Dot>
[[gnu::always_inline]] inline void depthwise_channels(const NhwcDepthwiseTile& tile, int64_t c) {
  constexpr int vectors = Bytes / 4;
  int32x4_t acc[Outputs][vectors];
#pragma GCC unroll 4
  for (int v = 0; v < vectors; ++v) {
    const int32x4_t bias = vld1q_s32(tile.bias + c + 4 * v);
#pragma GCC unroll 4
    for (int j = 0; j < Outputs; ++j) acc[j][v] = bias;
  }
  const int64_t lane = c % nhwc_lanes;
  const auto* weights =
      reinterpret_cast<const int8_t*>(tile.weights) + (c - lane) * tile.quads * Outputs * 4 + lane * 4;
  const uint8_t* const* pixels = tile.pixels;
  for (int64_t quad = 0; quad < tile.quads; ++quad, pixels += 4) {
    const int8x16_t p0 = load_bytes<Bytes>(pixels[0] + c), p1 = load_bytes<Bytes>(pixels[1] + c);
    const int8x16_t p2 = load_bytes<Bytes>(pixels[2] + c), p3 = load_bytes<Bytes>(pixels[3] + c);
    // A channel's four side by side.
    const int8x16_t even[2] = {vzip1q_s8(p0, p2), vzip2q_s8(p0, p2)}, odd[2] = {vzip1q_s8(p1, p3), vzip2q_s8(p1, p3)};
    const int8x16_t four[4] = {vzip1q_s8(even[0], odd[0]), vzip2q_s8(even[0], odd[0]), vzip1q_s8(even[1], odd[1]),
                               vzip2q_s8(even[1], odd[1])};
#pragma GCC unroll 4
    for (int j = 0; j < Outputs; ++j, weights += 4 * nhwc_lanes) {
#pragma GCC unroll 4
      for (int v = 0; v < vectors; ++v) acc[j][v] = Dot::add(acc[j][v], four[v], vld1q_s8(weights + 16 * v));
    }
  }
  for_kind(tile, [&]<CodeRange Range, bool Signed>() {
#pragma GCC unroll 4
    for (int j = 0; j < Outputs; ++j) {
      uint8_t* to = tile.y + j * tile.channels + c;
      if constexpr (Bytes == 4) {
        const int32x4_t both[2] = {acc[j][0], acc[j][0]};
        const uint8x8_t codes = NeonCodes(tile, c).template operator()<Range, Signed>(both);
        const uint32_t four = vget_lane_u32(vreinterpret_u32_u8(codes), 0);
        std::memcpy(to, &four, sizeof four);
      } else {
#pragma GCC unroll 2
        for (int half = 0; half < Bytes / 8; ++half) {
          const int32x4_t both[2] = {acc[j][2 * half], acc[j][2 * half + 1]};
          const uint8x8_t codes = NeonCodes(tile, c + 8 * half).template operator()<Range, Signed>(both);
          vst1_u8(to + 8 * half, codes);
        }
      }
    }
  });
}

template <int Outputs, class Dot = SignedDot>
void depthwise(const NhwcDepthwiseTile& given) {
  const NhwcDepthwiseTile tile = given;
  int64_t c = 0;
  for (; c + 16 <= tile.channels; c += 16) depthwise_channels<Outputs, 16, Dot>(tile, c);
  if (c + 8 <= tile.channels) {
    depthwise_channels<Outputs, 8, Dot>(tile, c);
    c += 8;
  }
  if (c < tile.channels) depthwise_channels<Outputs, 4, Dot>(tile, c);
}

}  // namespace
}  // namespace tenon::kernels

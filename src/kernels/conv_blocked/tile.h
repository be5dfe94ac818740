// What the inner loops of convolutions in blocked layout get: some pixels in, the same number of output pixels out.
#pragma once

#include <algorithm>
#include <cstdint>

#include "kernels/conv_blocked/depthwise_row.h"
#include "kernels/dispatch.h"

namespace tenon::kernels {

inline constexpr int most_tile_pixels = 16;

// Pixel i of a tile reads x[pixels[i] + steps[s] + lane] for every step s and every lane of an input block, and stores
// a block of output channels at y + i * block; in a tile of two blocks, the second one at y_step from there. Tiles of
// as many pixels follow it.
struct BlockedTile {
  int64_t tiles = 1;
  const float* x;
  const int64_t* pixels;
  const int64_t* steps;
  int64_t step_count;
  const float* weights;  // [step][lane][block]
  int64_t weight_step;   // from those of the first block to those of the second
  const float* start;    // what the sums start with, `block` floats a block for all pixels; null: with what y holds
  const float* next_weights;  // that are needed soon, for both blocks `weight_step` apart
  const float* next_end;
  int64_t next_lines;  // cache lines of them that each step fetches
  float* y;
  int64_t y_step;
  const float* residual;  // laid out as y is; null adds nothing
  bool clamp;             // to [lo, hi]; NaN stays NaN
  float lo;
  float hi;

  // Of `count` tiles that share their weights, those from `index` on fetch their part of the `floats` at `following`.
  void fetch(const float* following, int64_t floats, int64_t index, int64_t count) {
    constexpr int64_t line = 16;
    const int64_t fetches = std::max<int64_t>(1, count * step_count) * line;
    next_lines = (floats + fetches - 1) / fetches;
    next_weights = following + index * next_lines * step_count * line;
    next_end = following + floats;
    stop_at_end();
  }
  // What the tile after this one fetches.
  void fetch_on() {
    next_weights += 16 * next_lines * step_count;
    stop_at_end();
  }
  void stop_at_end() {
    if (next_weights < next_end) return;
    next_weights = next_end = weights;
    next_lines = 0;
  }
};

// Pixel i of a depthwise tile reads x[x_at + i * x_step + offsets[t] + channel] for every tap t, and is stored at
// y + i * y_step.
struct DepthwiseTile {
  const float* x;
  int64_t x_at;
  int64_t x_step, y_step;
  const int64_t* offsets;
  const int64_t* weight_offsets;  // of each tap's `block` weights
  int64_t taps;
  const float* weights;
  const float* start;  // `block` floats
  float* y;
  const float* residual;  // laid out as y is; null adds nothing
  float lo;
  float hi;
};

struct ConvBlockedKernels {
  Isa isa;
  int block;       // output channels side by side
  int pixels;      // at most, in a tile of one block
  int two_pixels;  // at most, in a tile of two; 0: there are none
  int dw_pixels;   // at most, in a depthwise tile
  // By the number of pixels, from 1 on; [0] is not used. Input blocks have `block` lanes, or one in `plain`.
  using Function = void (*)(const BlockedTile& tile);
  Function blocked[most_tile_pixels + 1], plain[most_tile_pixels + 1];
  Function two_blocked[most_tile_pixels + 1], two_plain[most_tile_pixels + 1];
  void (*depthwise[most_tile_pixels + 1])(const DepthwiseTile& tile);
  DepthwiseRowTable depthwise_rows;
};

TENON_ISA_TABLES(ConvBlockedKernels, conv_blocked_kernels)

}  // namespace tenon::kernels

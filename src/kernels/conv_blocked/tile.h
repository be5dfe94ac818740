// What the inner loops of convolutions in blocked layout get: some pixels in, the same number of output pixels out.
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/cpu_features.h"
#include "kernels/conv_blocked/depthwise_row.h"
#include "kernels/dispatch.h"

namespace tenon::kernels {

inline constexpr int most_tile_pixels = 16;

// Pixel i of a tile reads x[pixels[i] + steps[s] + lane] for every step s and every lane of an input block, and stores
// a block of output channels at y + i * block; in a tile of two blocks, the second one at y_step from there. Tiles of
// as many pixels follow it. Number is float, or uint16_t for half precision.
template <class Number>
struct TileOf {
  int64_t tiles = 1;
  const Number* x;
  const int64_t* pixels;
  const int64_t* steps;
  int64_t step_count;
  const Number* weights;  // [step][lane][block]
  int64_t weight_step;    // from those of the first block to those of the second
  // What the sums start with, `block` numbers a block for all pixels; null: with what y holds, or `sums`.
  const Number* start;
  // Weights that are needed soon, of each block `weight_step` apart: the numbers of them that a tile fetches, and the
  // cache lines that a step does.
  const Number *next_weights, *next_end;
  int64_t next_part, next_lines;
  Number* y;
  int64_t y_step;
  const Number* residual;  // laid out as y is; null adds nothing
  bool clamp;              // to [lo, hi]; NaN stays NaN
  float lo;
  float hi;
  // Half precision: where sums of `most_products` products are added up, if there are more: those of the first pixel of
  // a tile, for all its blocks, and so on. Tiles that keep them for others, instead of y, have them `sums_step` a pixel
  // apart.
  float* sums = nullptr;
  int64_t sums_step = 0;
  bool keeps_sums = false;
};
using BlockedTile = TileOf<float>;

// Weights that are fetched while tiles that share others are worked on, a part by each tile; none if the second cache
// holds all of them.
template <class Number>
class WeightsAhead {
 public:
  // `count` from `weights` on, which are some of those before `all_end`.
  WeightsAhead(const Number* weights, int64_t count, const Number* all, const Number* all_end, int64_t tiles,
               int64_t steps)
      : weights_(weights) {
    const bool all_cached = (all_end - all) * static_cast<int64_t>(sizeof(Number)) < cpu_features().l2_bytes;
    if (all_cached || weights >= all_end) return;
    count_ = count;
    part_ = (count + tiles * line - 1) / (tiles * line) * line;
    lines_ = (part_ / line + steps - 1) / std::max<int64_t>(1, steps);
  }
  // In those from the one with this index on.
  void fetch_in(TileOf<Number>& tile, int64_t index) const {
    tile.next_weights = weights_ + std::min(index * part_, count_);
    tile.next_end = weights_ + count_;
    tile.next_part = part_;
    tile.next_lines = lines_;
  }

 private:
  static constexpr int64_t line = 64 / sizeof(Number);
  const Number* weights_;
  int64_t count_ = 0, part_ = 0, lines_ = 0;
};

// Pixel i of a depthwise tile reads x[x_at + i * x_step + offsets[t] + channel] for every tap t, and is stored at
// y + i * y_step.
template <class Number>
struct DepthwiseTileOf {
  const Number* x;
  int64_t x_at;
  int64_t x_step, y_step;
  const int64_t* offsets;
  const int64_t* weight_offsets;  // of each tap's `block` weights
  int64_t taps;
  const Number* weights;
  const Number* start;  // `block` numbers
  Number* y;
  const Number* residual;  // laid out as y is; null adds nothing
  float lo;
  float hi;
};

// Pixel i of block b is `block` sums at sums + b * block_step + i % phases * phase_step + i / phases * block. They
// become planes: what channel c has of the pixels is stored side by side at y + c * y_step. Pixels are read up to a
// multiple of 16.
struct BlocksToPlanes {
  const float* sums;
  int64_t block_step, phases, phase_step;
  int64_t pixels, channels;
  float* y;
  int64_t y_step;
  const float* residual;  // laid out as y is; null adds nothing
  bool clamp;             // to [lo, hi]; NaN stays NaN
  float lo;
  float hi;
};

template <class Number>
struct BlockedConvKernels {
  Isa isa;
  int block;       // output channels side by side
  int pixels;      // at most, in a tile of one block
  int two_pixels;  // at most, in a tile of two
  int dw_pixels;   // at most, in a depthwise tile
  // By the number of pixels, from 1 on; [0] is not used. Input blocks have `block` lanes, or one in `plain`.
  using Function = void (*)(const TileOf<Number>& tile);
  Function blocked[most_tile_pixels + 1], plain[most_tile_pixels + 1];
  Function two_blocked[most_tile_pixels + 1], two_plain[most_tile_pixels + 1];
  void (*depthwise[most_tile_pixels + 1])(const DepthwiseTileOf<Number>& tile);

  // Blocks of output channels that are worked on together, and the most pixels of a tile of one or two.
  static constexpr int64_t blocks_at_once = 2;
  int64_t most_pixels(int64_t blocks) const { return blocks == 1 ? pixels : two_pixels; }
  DepthwiseRowTable<Number> depthwise_rows;
  void (*to_planes)(const BlocksToPlanes& blocks);  // of floats only
  // Plain images are multiplied where they are if a sum has at least so many products for each output channel of a
  // group: more for which patches were copied, or fewer sums to be put into planes. 0: never.
  int64_t least_plain_depth;
  // Products that are summed up before the sum is added to one of floats. 0: all of them.
  int64_t most_products;
};

using ConvBlockedKernels = BlockedConvKernels<float>;
using HalfConvBlockedKernels = BlockedConvKernels<uint16_t>;

TENON_ISA_TABLES(ConvBlockedKernels, conv_blocked_kernels)
extern const HalfConvBlockedKernels half_conv_blocked_kernels_neon_fp16;

// Works on `count` pixels, from those of `tile` on, in so many tiles of nearly the same size.
template <class Number>
inline void run_tiles(const typename BlockedConvKernels<Number>::Function* kernels, TileOf<Number> tile, int64_t count,
                      int64_t tiles, int64_t block, const WeightsAhead<Number>& ahead) {
  const int64_t least = count / tiles, longer = count % tiles;
  const auto run = [&](int64_t index, int64_t number, int64_t pixels) {
    if (number == 0) return;
    tile.tiles = number;
    ahead.fetch_in(tile, index);
    kernels[pixels](tile);
    tile.pixels += number * pixels;
    tile.y += number * pixels * block;
    if (tile.sums) tile.sums += number * pixels * tile.sums_step;
    if (tile.residual) tile.residual += number * pixels * block;
  };
  run(0, longer, least + 1);
  run(longer, tiles - longer, least);
}

}  // namespace tenon::kernels

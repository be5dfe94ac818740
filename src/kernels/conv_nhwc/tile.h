// What differs between instruction sets in the convolution of bytes whose channels come last.
#pragma once

#include <cstdint>
#include <vector>

#include "kernels/code_products.h"

namespace tenon::kernels {

// Some output pixels by panels of output channels: the sums over all taps and bytes, plus the bias, scaled, rounded to
// even, limited, and the zero point added.
struct NhwcTile {
  int64_t taps, bytes;           // bytes of a pixel that a tap reads: a multiple of 4
  const uint8_t* const* pixels;  // [taps][rows]
  int64_t panels;
  const uint8_t* weights;  // [panels][taps][bytes / group, rounded up][columns][group], signed
  const int32_t* bias;     // by column of all panels, and so are the scales
  const float* scales;
  CodeRange range;
  int32_t lowest, highest;  // of the codes: those of int8_t or uint8_t
  int32_t zero;
  uint8_t* y;      // of the first pixel; the next one's is `pixel` bytes on
  int64_t pixel;   // bytes of a pixel of y
  int64_t stored;  // how many columns are stored
};

// Some neighbouring output pixels of a depthwise convolution, all channels. Four pixels at a time are multiplied: what
// they are to each output is in the weights.
struct NhwcDepthwiseTile {
  int64_t quads;
  const uint8_t* const* pixels;  // [quads][4]
  int64_t channels;              // a multiple of 4
  const uint8_t* weights;        // [channels / nhwc_lanes, rounded up][quads][outputs][nhwc_lanes][4], signed
  const int32_t* bias;           // by channel, and so are the scales
  int64_t wide;                  // how many channels are in wide blocks
  const float* scales;
  CodeRange range;
  int32_t lowest, highest;
  int32_t zero;
  uint8_t* y;  // of the first output; the next one's is `channels` bytes on
};

// Channels that a depthwise convolution computes at once.
inline constexpr int nhwc_lanes = 16;
// How many outputs it computes at once: one, two or four.
inline constexpr int nhwc_output_counts = 3;

// Channels of a wide block: as many bytes as a register has. Its weights are [quads][outputs][nhwc_wide][4].
inline constexpr int64_t nhwc_wide = 64;
// Wide blocks come first, and what is left fills less than half of one.
constexpr int64_t nhwc_wide_channels(int64_t channels) { return (channels + nhwc_wide / 2) / nhwc_wide * nhwc_wide; }
// Where a channel is among those of its wide block, as instructions that interleave bytes in 16 at a time leave them:
// the first 4 of each 16, then the next.
constexpr int64_t nhwc_wide_place(int64_t channel) { return channel % 16 / 4 * 16 + channel / 16 * 4 + channel % 4; }

inline constexpr int most_nhwc_rows = 16;

struct NhwcConvKernels {
  using Multiply = void (*)(const NhwcTile& tile);

  const char* name;
  bool unsigned_pixels = false;
  bool shifts = false;  // code_shift_bits are in the bias where sums are small or tiny
  int rows, columns;
  int group;                          // of the weights' bytes: 4 or 8
  int step = 1;                       // the weights' bytes of all taps are filled up to a multiple of this
  Multiply multiply[most_nhwc_rows];  // by the number of rows less one, at most `rows`
  using Depthwise = void (*)(const NhwcDepthwiseTile& tile);
  Depthwise depthwise[nhwc_output_counts];  // of 1 << i outputs
  // Called by a thread before it multiplies, and after; may be null.
  void (*enter)() = nullptr;
  void (*leave)() = nullptr;
  // Many outputs at once, of more than few_bytes bytes each, and what their pixels hold, side by side in rows of so
  // many bytes. May be null.
  void (*to_codes)(const CodeProduct& product) = nullptr;
  void (*gather)(const NhwcTile& tile, int count, int64_t row_bytes, uint8_t* to) = nullptr;
  int64_t few_bytes = 0;
  bool wide_depthwise = false;  // whether there are wide blocks
  bool joins_rows = false;      // whether few bytes of a pixel are read row by row of the window, not as a patch
  // The same for pixels that are signed otherwise; may be null.
  const NhwcConvKernels* other_pixels = nullptr;
};

extern const NhwcConvKernels nhwc_conv_kernels_portable;
#if defined(__aarch64__)
extern const NhwcConvKernels nhwc_conv_kernels_neon_dotprod, nhwc_conv_kernels_neon_i8mm,
    nhwc_conv_kernels_neon_i8mm_unsigned;
#elif defined(__x86_64__)
extern const NhwcConvKernels nhwc_conv_kernels_avx2, nhwc_conv_kernels_avx512_vnni, nhwc_conv_kernels_amx;
#endif

// Those that this processor can run and best_isa() allows, worst to best.
std::vector<const NhwcConvKernels*> available_nhwc_conv_kernels();

}  // namespace tenon::kernels

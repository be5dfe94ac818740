// Convolution of images of bytes whose channels come last, [batch, height, width, channels], with requantization: a
// pixel's channels lie side by side, as the kernels multiply them, so neither patches nor panels are copied, and sums
// never leave the registers.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "kernels/conv/conv.h"
#include "kernels/conv_nhwc/tile.h"

namespace tenon::kernels {

// The kernels that convolutions use now; for such pixels, if there are some for both kinds.
const NhwcConvKernels& nhwc_conv_kernels(bool unsigned_pixels = true);

// Bytes of a pixel: fewer than 4 channels are as they are, others are filled up to a multiple of 4. What fills them up
// is never looked at.
constexpr int64_t nhwc_pixel(int64_t channels) { return channels < 4 ? channels : (channels + 3) / 4 * 4; }

// The sums of the positive weights of each output channel, and of the negative ones, filled up to whole panels.
struct NhwcWeightSums {
  std::span<const int32_t> positive, negative;
};

// How sums of products of codes become codes again: limit(round((sum + bias) * scale)) + zero.
class NhwcRequantization {
 public:
  // `bias` is by output channel, or empty; there is one scale or one for each output channel. x_zero is x's zero point
  // among the kernels' codes.
  NhwcRequantization(const NhwcConvKernels& kernels, NhwcWeightSums sums, int32_t x_zero, std::span<const int32_t> bias,
                     std::span<const float> scales, int32_t zero, bool is_signed);

  const std::vector<int32_t>& bias() const { return bias_; }
  const std::vector<float>& scales() const { return scales_; }

  // Sets what a tile of outputs from this channel on needs.
  template <class Tile>
  void put(Tile& tile, int64_t channel) const {
    tile.bias = bias_.data() + channel;
    tile.scales = scales_.data() + channel;
    tile.range = range_;
    tile.lowest = is_signed_ ? -128 : 0;
    tile.highest = tile.lowest + 255;
    tile.zero = zero_;
  }

 private:
  std::vector<int32_t> bias_;
  std::vector<float> scales_;
  int32_t zero_;
  bool is_signed_;
  CodeRange range_ = CodeRange::tiny;
};

// Constant weights [out_channels, in_channels / groups, height, width] less their zero points, arranged for the
// kernels. There is one group, or as many as channels in and out.
class NhwcConvWeights {
 public:
  // Only channels, groups, the kernel's size, strides and dilations are used of `shape`.
  NhwcConvWeights(ThreadPool& pool, const ConvShape& shape, const int8_t* weights,
                  const NhwcConvKernels& kernels = nhwc_conv_kernels(), PackedStorage& storage = fresh_storage());
  const NhwcConvKernels& kernels() const { return *kernels_; }
  size_t bytes() const { return buffer_.size(); }
  NhwcWeightSums sums() const;

 private:
  friend class NhwcConv;
  friend class NhwcDepthwiseConv;
  void pack_panels(ThreadPool& pool, const ConvShape& shape, const int8_t* weights, int8_t* to) const;
  void pack_quads(const ConvShape& shape, const int8_t* weights, int8_t* to) const;
  const uint8_t* panel(int64_t number) const;

  const NhwcConvKernels* kernels_;
  bool is_depthwise_;
  int64_t wide_ = 0;        // channels in wide blocks
  int columns_;             // of a panel
  int64_t panels_, steps_;  // steps: taps, or groups of four pixels
  int64_t panel_bytes_;
  PackedBuffer buffer_;  // sums, then [panel][tap][group][column][byte]; depthwise as NhwcDepthwiseTile says
};

// What lies outside the image has the code `outside`.
void conv_nhwc(ThreadPool& pool, const ConvShape& shape, const uint8_t* x, uint8_t outside,
               const NhwcConvWeights& weights, const NhwcRequantization& requantization, uint8_t* y);

}  // namespace tenon::kernels

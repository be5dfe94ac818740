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

// The kernels that convolutions use now. Their pixels' codes are signed or unsigned, all of them.
const NhwcConvKernels& nhwc_conv_kernels();

// Bytes of a pixel: fewer than 4 channels are as they are, others are filled up to a multiple of 4. What fills them up is
// never looked at.
constexpr int64_t nhwc_pixel(int64_t channels) { return channels < 4 ? channels : (channels + 3) / 4 * 4; }

// Constant weights [out_channels, in_channels, height, width] less their zero points, arranged for the kernels.
class NhwcConvWeights {
 public:
  // Only channels and the kernel's size are used of `shape`, which has one group.
  NhwcConvWeights(ThreadPool& pool, const ConvShape& shape, const int8_t* weights,
                  const NhwcConvKernels& kernels = nhwc_conv_kernels(), PackedStorage& storage = fresh_storage());
  const NhwcConvKernels& kernels() const { return *kernels_; }
  size_t bytes() const { return buffer_.size(); }
  // The channels filled up to whole panels.
  int64_t columns() const { return panels_ * kernels_->columns; }
  // The sums of the positive weights of each of them, and of the negative ones.
  const int32_t* positive_sums() const { return buffer_.as<int32_t>(); }
  const int32_t* negative_sums() const { return positive_sums() + columns(); }

 private:
  friend class NhwcConv;
  const uint8_t* panel(int64_t number) const;
  const NhwcConvKernels* kernels_;
  int64_t panels_, taps_, panel_bytes_;
  PackedBuffer buffer_;  // sums, then [panel][tap][group][column][byte]
};

// How sums of products of codes become codes again: limit(round((sum + bias) * scale)) + zero.
class NhwcRequantization {
 public:
  // `bias` is by output channel, or null; there is one scale or one for each output channel. x_zero is x's zero point
  // among the kernels' codes.
  NhwcRequantization(const NhwcConvWeights& weights, int32_t x_zero, std::span<const int32_t> bias,
                     std::span<const float> scales, int32_t zero, bool is_signed);

 private:
  friend class NhwcConv;
  std::vector<int32_t> bias_;
  std::vector<float> scales_;
  int32_t zero_;
  bool is_signed_, small_;
};

// What lies outside the image has the code `outside`.
void conv_nhwc(ThreadPool& pool, const ConvShape& shape, const uint8_t* x, uint8_t outside,
               const NhwcConvWeights& weights, const NhwcRequantization& requantization, uint8_t* y);

}  // namespace tenon::kernels

// Convolution of images whose channels are blocked: [batch, channels / block, height, width, block], so that a
// pixel's channels lie side by side and neither patches nor panels are copied.
#pragma once

#include <cstdint>

#include "base/thread_pool.h"
#include "kernels/conv/conv.h"
#include "kernels/conv_blocked/tile.h"
#include "kernels/pool/pool.h"
#include "kernels/scratch.h"

namespace tenon::kernels {

// Constant weights [out_channels, in_channels / groups, 1, height, width], arranged for the instruction set in use when
// they were packed. There is one group, or as many as channels in and out, or groups of whole blocks in and out. Number
// is float, or uint16_t for half precision, which needs half_conv_block() > 0.
template <class Number>
class ConvWeightsInBlocks {
 public:
  // Only channels, groups and the kernel's size are used of `shape`; out_channels is a multiple of the block, and so is
  // in_channels unless the input is plain: [batch, channels, height, width], with one group.
  ConvWeightsInBlocks(ThreadPool& pool, const ConvShape& shape, bool plain_input, const Number* weights,
                      PackedStorage& storage = fresh_storage());
  size_t bytes() const { return buffer_.size(); }
  int64_t block() const { return kernels_->block; }
  bool plain_input() const { return plain_input_; }

 private:
  template <class>
  friend class DenseBlockedConv;
  template <class>
  friend class DepthwiseBlockedConv;
  const BlockedConvKernels<Number>* kernels_;
  bool plain_input_;
  PackedBuffer buffer_;  // [out block][in block][height][width][in lane][out lane]; depthwise without the in axes
};

using BlockedConvWeights = ConvWeightsInBlocks<float>;
using HalfBlockedConvWeights = ConvWeightsInBlocks<uint16_t>;

// The channels of a block for the instruction set in use now; 0 where there is no arithmetic of half precision.
int64_t conv_block();
int64_t half_conv_block();
Isa conv_blocked_isa();

// y is [batch, out_channels / block, height, width, block], and so is epilogue.residual. The images have one or two
// spatial dimensions: the first of the three is 1.
void conv_blocked(ThreadPool& pool, const ConvShape& shape, const float* x, const BlockedConvWeights& weights, float* y,
                  const ConvEpilogue& epilogue = {});
// The maximum of each window of what conv_blocked gives, if that is anything, for one group and a kernel without
// dilation. What it gives stays in a cache. `windows` are those of a block of channels: height, width, block.
void conv_blocked_max_pool(ThreadPool& pool, const ConvShape& shape, const PoolShape& windows, const float* x,
                           const BlockedConvWeights& weights, float* y, const ConvEpilogue& epilogue = {});
// Whether that is faster than max_pool afterwards.
bool pays_to_pool(const ThreadPool& pool, const ConvShape& shape, const PoolShape& windows);
// In half precision up to 64 products are summed up, and two such sums, which are then added to sums of floats.
void conv_blocked(ThreadPool& pool, const ConvShape& shape, const uint16_t* x, const HalfBlockedConvWeights& weights,
                  uint16_t* y, const HalfConvEpilogue& epilogue = {});

}  // namespace tenon::kernels

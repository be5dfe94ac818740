// Winograd's convolution with a kernel of 3 by 3 and stride 1, of float images whose channels are blocked (see
// conv_blocked.h). Tiles of the image become points, for each of which channels are multiplied as by a kernel of 1 by
// 1: 36 multiplications instead of 144 for a tile of 4 by 4 pixels. Sums round differently, by more for larger tiles.
// Pixels of a tile lie as far apart as those of the kernel. Groups fill blocks.
#pragma once

#include <cstdint>

#include "base/thread_pool.h"
#include "kernels/conv/conv.h"
#include "kernels/conv_blocked/tile.h"
#include "kernels/pool/pool.h"
#include "kernels/scratch.h"
#include "kernels/winograd/transform.h"

namespace tenon::kernels {

// Constant weights [out_channels, in_channels / groups, 1, 3, 3] as points, for the instruction set in use when they
// were made.
class WinogradWeights {
 public:
  // Only channels and groups are used of `shape`. `tile` is 2 or 4.
  WinogradWeights(ThreadPool& pool, const ConvShape& shape, int tile, const float* weights,
                  PackedStorage& storage = fresh_storage());
  size_t bytes() const { return buffer_.size(); }
  int tile() const { return tile_; }

 private:
  friend class WinogradConv;
  const WinogradKernels* transforms_;
  const ConvBlockedKernels* kernels_;
  int tile_;
  PackedBuffer buffer_;  // [point][out block][in block][in lane][out lane]
};

// Whether the convolution can be done so.
bool can_use_winograd(const ConvShape& shape);

// x, y and epilogue as of conv_blocked.
void conv_winograd(ThreadPool& pool, const ConvShape& shape, const float* x, const WinogradWeights& weights, float* y,
                   const ConvEpilogue& epilogue = {});

// Whether the maxima of windows of its result can be taken while it is stored: of two by two pixels side by side.
// `windows` are those of a block of channels: height, width, block.
bool can_pool_winograd(const ConvShape& shape, const PoolShape& windows);
void conv_winograd_max_pool(ThreadPool& pool, const ConvShape& shape, const PoolShape& windows, const float* x,
                            const WinogradWeights& weights, float* y, const ConvEpilogue& epilogue = {});

}  // namespace tenon::kernels

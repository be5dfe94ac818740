// Transposed convolution of float images whose channels are blocked (see conv_blocked.h), with one group. The outputs
// whose rows and columns leave the same rest when they are divided by the stride read the same taps: they are a
// convolution of the image, with stride 1 and a part of the kernel.
#pragma once

#include <cstdint>
#include <vector>

#include "base/thread_pool.h"
#include "kernels/conv_blocked/conv_blocked.h"

namespace tenon::kernels {

// Constant weights [in_channels, out_channels, 1, height, width], arranged for the instruction set in use when they
// were packed.
class BlockedConvTransposeWeights {
 public:
  // Of `shape`, as conv_transpose takes it, channels, kernel, stride and pad are used. Both numbers of channels are
  // multiples of the block; dilations are 1 and no pad is larger than the kernel.
  BlockedConvTransposeWeights(ThreadPool& pool, const ConvShape& shape, const float* weights,
                              PackedStorage& storage = fresh_storage());
  size_t bytes() const;

 private:
  friend void conv_transpose_blocked(ThreadPool& pool, const ConvShape& shape, const float* x,
                                     const BlockedConvTransposeWeights& weights, float* y, const float* bias);
  std::vector<BlockedConvWeights> parts_;  // for each rest of a row, for each rest of a column
};

// `shape` as the weights were packed for, with the sizes of images. `bias` may be null.
void conv_transpose_blocked(ThreadPool& pool, const ConvShape& shape, const float* x,
                            const BlockedConvTransposeWeights& weights, float* y, const float* bias);

}  // namespace tenon::kernels

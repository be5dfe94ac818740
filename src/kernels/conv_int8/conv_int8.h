// Convolution of images of 8-bit integers, channels first, with 32-bit sums that wrap around.
#pragma once

#include <cstdint>
#include <vector>

#include "kernels/conv/conv.h"
#include "kernels/gemm_int8/gemm_int8.h"

namespace tenon::kernels {

// Weights [out_channels, in_channels / groups, kernel...] arranged for the kernels that will use them.
class PackedByteConvWeights {
 public:
  // `zeros` are by output channel. Only channels, groups and the kernel's size are used of `shape`.
  PackedByteConvWeights(ThreadPool& pool, const ConvShape& shape, const void* weights, bool is_signed,
                        ByteZeroPoints zeros, const Int8Kernels& kernels = int8_kernels(),
                        PackedStorage& storage = fresh_storage());
  size_t bytes() const;

 private:
  friend void conv_int8(ThreadPool&, const ConvShape&, const void*, bool, int32_t, const PackedByteConvWeights&,
                        const int32_t*, int32_t*);
  std::vector<PackedBytes> groups_;
};

// y[batch, out_channels, output...] = the sums over (x - zero) * (w - its zero point), plus `bias` (by output channel)
// unless it is null. x is [batch, in_channels, input...]; what lies outside it counts as `zero`. There is at least one
// input channel.
void conv_int8(ThreadPool& pool, const ConvShape& shape, const void* x, bool is_signed, int32_t zero,
               const PackedByteConvWeights& weights, const int32_t* bias, int32_t* y);

}  // namespace tenon::kernels

// Convolutions where each output channel reads one input channel.
#pragma once

#include "base/function_ref.h"
#include "kernels/conv/conv.h"
#include "kernels/dispatch.h"

namespace tenon::kernels {

struct DepthwiseRows {
  const float* from;  // each tap t reads from + offsets[t] + [0, n), and up to a vector beyond
  const int64_t* offsets;
  const float* weights;
  int64_t taps;
  float bias, lo, hi;
  int64_t count, step;  // rows, and how far the next one reads from the one before
};

struct DepthwiseKernels {
  Isa isa;
  // out[r * n + j] = clamp(bias + sum over t of weights[t] * from[r * step + offsets[t] + j], lo, hi) for r < count and
  // j < n.
  void (*rows)(const DepthwiseRows& rows, float* out, int64_t n);
};

TENON_ISA_TABLES(DepthwiseKernels, depthwise_kernels)

// weights are [out_channels, kernel...]; out_channels is a multiple of in_channels.
void conv_depthwise(ThreadPool& pool, const ConvShape& shape, const float* x, const float* weights, float* y,
                    const ConvEpilogue& epilogue);

// The same of bytes, signed ones or not, less `zero`, which is also what lies outside of an image: store(plane, sums)
// gets each plane of the output, by any thread. The sums, which start with `bias` unless it is null, are exact where
// none reaches 2^24.
void conv_depthwise_bytes(ThreadPool& pool, const ConvShape& shape, const void* x, bool is_signed, int32_t zero,
                          const float* weights, const float* bias,
                          FunctionRef<void(int64_t plane, const float* sums)> store);

}  // namespace tenon::kernels

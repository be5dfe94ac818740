// Convolutions where each output channel reads one input channel.
#pragma once

#include "kernels/conv/conv.h"
#include "kernels/dispatch.h"

namespace tenon::kernels {

struct DepthwiseRow {
  const float* from;  // each tap t reads from + offsets[t] + [0, n), and up to a vector beyond
  const int64_t* offsets;
  const float* weights;
  int64_t taps;
  float bias, lo, hi;
};

struct DepthwiseKernels {
  Isa isa;
  // out[j] = clamp(bias + sum over t of weights[t] * from[offsets[t] + j], lo, hi) for j < n.
  void (*row)(const DepthwiseRow& row, float* out, int64_t n);
};

TENON_ISA_TABLES(DepthwiseKernels, depthwise_kernels)

// weights are [out_channels, kernel...]; out_channels is a multiple of in_channels.
void conv_depthwise(ThreadPool& pool, const ConvShape& shape, const float* x, const float* weights, float* y,
                    const ConvEpilogue& epilogue);

}  // namespace tenon::kernels

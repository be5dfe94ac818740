// Convolutions where each output channel reads one input channel.
#pragma once

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

}  // namespace tenon::kernels

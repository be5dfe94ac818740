// Convolution of float images with one to three spatial dimensions, channels first.
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <vector>

#include "base/thread_pool.h"
#include "kernels/gemm/gemm.h"
#include "kernels/scratch.h"

namespace tenon::kernels {

template <class Number>
struct BlockedConvKernels;
using ConvBlockedKernels = BlockedConvKernels<float>;

// Spatial arrays are depth, height, width; dimensions that an image lacks stay at their defaults.
// Output index o reads input indices o * stride - pad + i * dilation for i < kernel; what lies outside reads as zero,
// so padding at the end follows from `output`. For a transposed convolution, exchange "output" and "input".
struct ConvShape {
  int64_t batch = 1;
  int64_t in_channels = 1;   // of all groups
  int64_t out_channels = 1;  // of all groups
  int64_t groups = 1;
  int64_t input[3] = {1, 1, 1};
  int64_t output[3] = {1, 1, 1};
  int64_t kernel[3] = {1, 1, 1};
  int64_t stride[3] = {1, 1, 1};
  int64_t dilation[3] = {1, 1, 1};
  int64_t pad[3] = {0, 0, 0};

  int64_t input_size() const { return input[0] * input[1] * input[2]; }
  int64_t output_size() const { return output[0] * output[1] * output[2]; }
  int64_t kernel_size() const { return kernel[0] * kernel[1] * kernel[2]; }
};

// Applied to each output value: activation(clamp(value + bias of its channel + residual, lo, hi)).
// Number is float, or uint16_t for half precision.
template <class Number>
struct EpilogueOf {
  const Number* bias = nullptr;
  float lo = -std::numeric_limits<float>::infinity();  // Relu is lo = 0
  float hi = std::numeric_limits<float>::infinity();
  const Number* residual = nullptr;  // laid out as the output is, but other memory
  void (*activation)(const Number* x, Number* y, int64_t n) = nullptr;
};
using ConvEpilogue = EpilogueOf<float>;
using HalfConvEpilogue = EpilogueOf<uint16_t>;

// Constant weights [out_channels, in_channels / groups, kernel...] arranged for the kernels that will use them.
class PackedConvWeights {
 public:
  // Only channels, groups and the kernel's size are used of `shape`. `direct`: whether images are multiplied where they
  // are; if not given, where the instruction set gains by it. Depthwise ones never are.
  PackedConvWeights(ThreadPool& pool, const ConvShape& shape, const float* weights,
                    PackedStorage& storage = fresh_storage(), std::optional<bool> direct = std::nullopt);
  size_t bytes() const;
  // Those of a depthwise convolution, [out_channels, kernel...]; null for others.
  const float* depthwise() const { return matrices_.empty() && !kernels_ ? buffer_.as<float>() : nullptr; }

 private:
  friend void conv(ThreadPool&, const ConvShape&, const float*, const PackedConvWeights&, float*, const ConvEpilogue&);
  friend class GroupConv;
  std::vector<PackedMatrix> matrices_;           // one per group
  const ConvBlockedKernels* kernels_ = nullptr;  // of direct convolutions
  PackedBuffer buffer_;                          // of depthwise and direct ones
};

// The instruction set conv uses now for depthwise convolutions; others use gemm's.
Isa conv_isa();

// x is [batch, in_channels, input...], y is [batch, out_channels, output...].
void conv(ThreadPool& pool, const ConvShape& shape, const float* x, const PackedConvWeights& weights, float* y,
          const ConvEpilogue& epilogue = {});

// Constant weights of a transposed convolution, [in_channels, out_channels / groups, kernel...], arranged so that
// images are multiplied where they are. Outputs whose indices plus the padding leave the same rests when they are
// divided by the strides read the same taps: they are a convolution with a part of the weights.
class PackedConvTransposeWeights {
 public:
  // Of `shape` channels, groups, kernel, strides and dilations are used.
  PackedConvTransposeWeights(ThreadPool& pool, const ConvShape& shape, const float* weights,
                             PackedStorage& storage = fresh_storage());
  // Whether that is faster than conv_transpose with weights as they are, for the instruction set in use.
  static bool suits(const ConvShape& shape);
  size_t bytes() const;

 private:
  friend void conv_transpose(ThreadPool&, const ConvShape&, const float*, const PackedConvTransposeWeights&, float*,
                             const ConvEpilogue&);
  friend class TransposedConv;
  std::vector<PackedMatrix> matrices_;  // one per group, where conv_transpose_pairs takes them; then nothing else
  const ConvBlockedKernels* kernels_;
  PackedBuffer buffer_;
  std::vector<int64_t> starts_;  // of the weights for each depth's, row's and column's rest
  int64_t group_floats_ = 0;
};

// The gradient-like operator: x is [batch, in_channels, input...], weights [in_channels, out_channels / groups,
// kernel...], y [batch, out_channels, output...]; input index i adds to output indices i * stride - pad + k * dilation.
// Of the epilogue it knows bias, lo and hi.
void conv_transpose(ThreadPool& pool, const ConvShape& shape, const float* x, const float* weights, float* y,
                    const ConvEpilogue& epilogue = {});
void conv_transpose(ThreadPool& pool, const ConvShape& shape, const float* x, const PackedConvTransposeWeights& weights,
                    float* y, const ConvEpilogue& epilogue = {});

}  // namespace tenon::kernels

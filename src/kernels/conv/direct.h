// Convolution without patches, for any number of weights: the image's pixels, where they are, times vectors of output
// channels.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "kernels/conv/conv.h"
#include "kernels/conv_blocked/tile.h"

namespace tenon::kernels {

// Weights of one group [channels, k] as [channels / block rounded up][k][block].
int64_t direct_weights_floats(const ConvBlockedKernels& kernels, int64_t channels, int64_t k);
void pack_direct_weights(ThreadPool& pool, const ConvBlockedKernels& kernels, int64_t channels, int64_t k,
                         const float* weights, float* to);

// Outputs whose columns leave the same rest when they are divided by the number of parts.
struct DirectPart {
  const float* weights;                 // packed ones
  const std::vector<int64_t>& offsets;  // for each k of them, from what the first output reads
};

// Outputs of one group of one image.
struct DirectConv {
  const float* image;
  int64_t size[3];        // planes, rows and columns of each part
  int64_t image_step[3];  // from what an output of a part reads to what the next one does
  int64_t image_channels;
  std::span<const DirectPart> parts;
  std::span<const float> all_weights;  // those of the parts are among them; others follow where they end
  int64_t channels;
  int64_t columns;        // of the output: at most those of all parts
  int64_t y_step[2];      // from one of its planes and rows to the next
  int64_t y_channel;      // from one channel to the next
  const float* bias;      // null: none
  const float* residual;  // laid out as y is; null: none
  float lo, hi;
  FloatFunction activation;  // null: none
};

// With `pool` null it runs in the calling thread.
void conv_direct(ThreadPool* pool, const ConvBlockedKernels& kernels, const DirectConv& conv, float* y);

}  // namespace tenon::kernels

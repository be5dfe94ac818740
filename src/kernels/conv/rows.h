// Convolution without patches, for few weights: they multiply rows of the image where these are.
#pragma once

#include "kernels/conv/image.h"
#include "kernels/gemm/gemm.h"
#include "kernels/gemm/tile.h"

namespace tenon::kernels {

// Whether that is possible, and faster than packing patches, for the weights of one group, which has so many output
// channels.
bool suits_rows(const ConvShape& shape, const ImageLayout& layout, int64_t channels);

// The copied channels of a group, with tile_columns floats before and after them that may be read.
struct RowsImage {
  const ConvShape& shape;
  const ImageLayout& layout;
  const std::vector<int64_t>& offsets;  // the layout's, for the shape
  const float* data;
};

// One group of one image. y's channels are `ldc` floats apart. With `pool` null it runs in the calling thread.
void conv_rows(ThreadPool* pool, const GemmKernels& kernels, const RowsImage& image, const PackedMatrix& weights,
               float* y, int64_t ldc, const GemmEpilogue& epilogue);

}  // namespace tenon::kernels

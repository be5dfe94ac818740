// Transposed convolutions whose windows lie side by side and are two columns wide: a product with a row for each output
// channel and tap and a column for each pixel, of which two rows at a time become one row of outputs.
#pragma once

#include "kernels/conv/conv.h"

namespace tenon::kernels {

// Of `shape` kernel, strides and dilations are used.
bool suits_pairs(const ConvShape& shape);

// One group of one image. The weights are a left side, [out_channels of a group * kernel, in_channels of a group]. Of
// the epilogue it knows bias, lo and hi. With `pool` null it runs in the calling thread.
void conv_transpose_pairs(ThreadPool* pool, const ConvShape& shape, const float* x, const PackedMatrix& weights,
                          float* y, const ConvEpilogue& epilogue);

}  // namespace tenon::kernels

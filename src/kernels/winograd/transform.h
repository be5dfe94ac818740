// What the transforms of Winograd's convolution get: a tile of an image in blocked layout and its points, or back.
#pragma once

#include <cstdint>

#include "kernels/dispatch.h"

namespace tenon::kernels {

// (size + 2)² pixels become as many points, each a block of channels.
struct WinogradInput {
  const float* x;      // the first pixel; the others of its row follow
  int64_t row_step;    // from row to row
  float* points;       // the first point
  int64_t point_step;  // from point to point
};

// The points become size² pixels, of which those within the image are stored: clamp(pixel + bias + residual).
struct WinogradOutput {
  const float* points;
  int64_t point_step;
  const float* bias;      // a block
  const float* residual;  // laid out as y is; null adds nothing
  float* y;
  int64_t row_step, column_step;  // from pixel to pixel
  int rows, columns;              // within the image
  float lo, hi;                   // NaN stays NaN
};

struct WinogradKernels {
  Isa isa;
  int block;
  // By the size of a tile of the result: 2 and 4; others are not used.
  void (*input[5])(const WinogradInput& tile);
  void (*output[5])(const WinogradOutput& tile);
};

TENON_ISA_TABLES(WinogradKernels, winograd_kernels)

}  // namespace tenon::kernels

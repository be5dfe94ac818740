// Convolutions that are computed many outputs at once, as products of rows of bytes.
#pragma once

#include "kernels/conv_nhwc/conv_nhwc.h"
#include "kernels/scratch.h"

namespace tenon::kernels {

// Images of whole registers of bytes in a copy in which the pixels of all outputs are equally far apart, for every tap:
// rows with what lies left and right of them, apart by what rows leave when they are divided by the stride.
class NhwcSheet {
 public:
  explicit NhwcSheet(const ConvShape& shape);

  // Positions, some of which are no outputs, from the first output to the last.
  int64_t positions() const { return (s_.batch - 1) * image_rows_ * row_ + (s_.output[1] - 1) * row_ + s_.output[2]; }
  // The output at a position, or -1.
  int64_t output(int64_t position) const;
  int64_t stride() const { return step_ * pixel_; }
  // From a position to the pixel of a tap.
  int64_t offset(int64_t tap) const;
  // For so many positions.
  int64_t bytes(int64_t positions) const;
  void fill(ThreadPool& pool, const uint8_t* x, uint8_t outside, uint8_t* to) const;

 private:
  void fill_row(const uint8_t* image, int64_t row, uint8_t outside, uint8_t* to) const;

  const ConvShape& s_;
  int64_t pixel_;
  bool is_compact_;     // holds no pixels but those that are read
  int64_t step_;        // pixels from an output to the next
  int64_t row_;         // positions of a row
  int64_t planes_;      // of rows that leave the same when they are divided by the stride
  int64_t image_rows_;  // of an image in a plane
};

}  // namespace tenon::kernels

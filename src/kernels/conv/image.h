// An image with its zero padding, as the convolution's inner loops read it.
#pragma once

#include "kernels/conv/conv.h"
#include "kernels/gemm/driver.h"

namespace tenon::kernels {

// What the outputs read of one channel, in each spatial dimension.
struct PaddedExtent {
  explicit PaddedExtent(const ConvShape& shape);
  int64_t size[3];
  bool needs_copy;  // something outside the input is read
  int64_t total() const { return size[0] * size[1] * size[2]; }
};

// Copies one channel and surrounds it with zeros: `to` gets extent.total() floats.
void pad_channel(const ConvShape& shape, const PaddedExtent& extent, const float* channel, float* to);

// The matrix [in_channels of a group * kernel, outputs] whose columns are the input patches, packed straight from an
// image.
class ImagePanels : public PanelSource {
 public:
  // `image` has channels of `sizes` each. `slack` promises that `width` floats before and after it may be read.
  ImagePanels(const ConvShape& shape, const float* image, const int64_t (&sizes)[3], bool slack, int width);
  int64_t ready() const override { return 0; }
  Panel ready_panel(int64_t, int64_t, int64_t) const override { return {nullptr, 0}; }
  void pack(int64_t k_begin, int64_t k, int64_t first, int64_t last, float* out) const override;

 private:
  template <int Width>
  void pack_panel(int64_t k_begin, int64_t k, int64_t panel, float* out) const;

  const ConvShape& shape_;
  const float* image_;
  int64_t row_, plane_;  // floats from one row and one plane to the next
  bool slack_;
  int width_;
  std::vector<int64_t> k_offsets_;
};

}  // namespace tenon::kernels

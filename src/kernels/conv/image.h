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

// Where the values are that the outputs read: in the image itself, or in a copy with its padding, in which columns that
// neighbouring outputs read lie side by side, whatever the stride.
struct ImageLayout {
  // `spreads`: also copies channels that would share few places in the first cache.
  explicit ImageLayout(const ConvShape& shape, bool spreads = false);
  // Where the value is that output 0 reads for each channel of a group and tap, the order of the weights.
  std::vector<int64_t> offsets(const ConvShape& shape) const;

  PaddedExtent extent;
  bool is_copy;
  int64_t phases;  // columns phase, phase + phases, … of a row lie side by side
  int64_t phase_columns;
  int64_t column_step;          // from one output of a row to the next
  int64_t row, plane, channel;  // floats from one to the next
};

// Copies one channel: `to` gets layout.channel floats.
void copy_channel(const ConvShape& shape, const ImageLayout& layout, const float* channel, float* to);

// The matrix [in_channels of a group * kernel, outputs] whose columns are the input patches, packed straight from an
// image.
class ImagePanels : public PanelSource {
 public:
  // `offsets` are the layout's, for the shape. `slack` promises that `width` floats before and after the image may be
  // read.
  ImagePanels(const ConvShape& shape, const ImageLayout& layout, const std::vector<int64_t>& offsets,
              const float* image, bool slack, int width)
      : shape_(shape), layout_(layout), offsets_(offsets), image_(image), slack_(slack), width_(width) {}
  int64_t ready() const override { return 0; }
  GemmPanel ready_panel(int64_t, int64_t, int64_t) const override { return {nullptr, 0}; }
  void pack(int64_t k_begin, int64_t k, int64_t first, int64_t last, float* out) const override;

 private:
  template <int Width>
  void pack_panel(int64_t k_begin, int64_t k, int64_t panel, float* out) const;

  const ConvShape& shape_;
  const ImageLayout& layout_;
  const std::vector<int64_t>& offsets_;
  const float* image_;
  bool slack_;
  int width_;
};

}  // namespace tenon::kernels

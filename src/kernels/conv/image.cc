#include "kernels/conv/image.h"

#include <algorithm>
#include <cstring>

namespace tenon::kernels {

PaddedExtent::PaddedExtent(const ConvShape& shape) : needs_copy(false) {
  for (int d = 0; d < 3; ++d) {
    size[d] = (shape.output[d] - 1) * shape.stride[d] + (shape.kernel[d] - 1) * shape.dilation[d] + 1;
    if (shape.pad[d] != 0 || size[d] > shape.input[d]) needs_copy = true;
  }
}

void pad_channel(const ConvShape& shape, const PaddedExtent& extent, const float* channel, float* to) {
  // Columns [left, right) of a padded row come from the input.
  const int64_t left = std::clamp<int64_t>(shape.pad[2], 0, extent.size[2]);
  const int64_t right = std::clamp<int64_t>(shape.pad[2] + shape.input[2], left, extent.size[2]);
  for (int64_t d = 0; d < extent.size[0]; ++d) {
    const int64_t from_d = d - shape.pad[0];
    for (int64_t h = 0; h < extent.size[1]; ++h, to += extent.size[2]) {
      const int64_t from_h = h - shape.pad[1];
      if (from_d < 0 || from_d >= shape.input[0] || from_h < 0 || from_h >= shape.input[1]) {
        std::fill(to, to + extent.size[2], 0.0f);
        continue;
      }
      const float* row = channel + (from_d * shape.input[1] + from_h) * shape.input[2];
      std::fill(to, to + left, 0.0f);
      std::memcpy(to + left, row + (left - shape.pad[2]), static_cast<size_t>(right - left) * sizeof(float));
      std::fill(to + right, to + extent.size[2], 0.0f);
    }
  }
}

ImagePanels::ImagePanels(const ConvShape& shape, const float* image, const int64_t (&sizes)[3], bool slack, int width)
    : shape_(shape), image_(image), row_(sizes[2]), plane_(sizes[1] * sizes[2]), slack_(slack), width_(width) {
  const int64_t channels = shape.in_channels / shape.groups;
  k_offsets_.reserve(static_cast<size_t>(channels * shape.kernel_size()));
  for (int64_t c = 0; c < channels; ++c) {
    for (int64_t d = 0; d < shape.kernel[0]; ++d) {
      for (int64_t h = 0; h < shape.kernel[1]; ++h) {
        for (int64_t w = 0; w < shape.kernel[2]; ++w) {
          k_offsets_.push_back(c * sizes[0] * plane_ + d * shape.dilation[0] * plane_ + h * shape.dilation[1] * row_ +
                               w * shape.dilation[2]);
        }
      }
    }
  }
}

template <int Width>
void ImagePanels::pack_panel(int64_t k_begin, int64_t k, int64_t panel, float* out) const {
  const int64_t outputs = shape_.output_size();
  const int64_t first = panel * Width;
  const int lanes = static_cast<int>(std::min<int64_t>(Width, outputs - first));
  int64_t at[Width];
  int row_end = lanes;  // lanes before it are in the first lane's output row
  int rows = 1;
  int64_t w = first % shape_.output[2], h = first / shape_.output[2] % shape_.output[1],
          d = first / shape_.output[2] / shape_.output[1];
  for (int j = 0; j < lanes; ++j) {
    at[j] = d * shape_.stride[0] * plane_ + h * shape_.stride[1] * row_ + w * shape_.stride[2];
    if (++w < shape_.output[2] || j + 1 == lanes) continue;
    if (rows++ == 1) row_end = j + 1;
    w = 0;
    if (++h == shape_.output[1]) h = 0, ++d;
  }
  const int64_t* offsets = k_offsets_.data() + k_begin;
  const bool whole = lanes == Width && shape_.stride[2] == 1;
  if (whole && rows == 1) {
    const float* from = image_ + at[0];
    for (int64_t p = 0; p < k; ++p, out += Width) std::memcpy(out, from + offsets[p], Width * sizeof(float));
    return;
  }
  if (whole && rows == 2 && slack_) {
    const float* head = image_ + at[0];
    const float* tail = image_ + at[Width - 1] - (Width - 1);
    int32_t from_tail[Width];
    for (int j = 0; j < Width; ++j) from_tail[j] = j >= row_end ? -1 : 0;
    for (int64_t p = 0; p < k; ++p, out += Width) {
      int32_t a[Width], b[Width];
      std::memcpy(a, head + offsets[p], sizeof a);
      std::memcpy(b, tail + offsets[p], sizeof b);
      for (int j = 0; j < Width; ++j) a[j] = (a[j] & ~from_tail[j]) | (b[j] & from_tail[j]);
      std::memcpy(out, a, sizeof a);
    }
    return;
  }
  if (lanes == Width && rows == 1 && shape_.stride[2] == 2 && slack_) {
    const float* from = image_ + at[0];
    for (int64_t p = 0; p < k; ++p, out += Width) {
      float both[2 * Width];
      std::memcpy(both, from + offsets[p], sizeof both);
      for (int j = 0; j < Width; ++j) out[j] = both[2 * j];
    }
    return;
  }
  if (lanes == Width) {
    for (int64_t p = 0; p < k; ++p, out += Width) {
      const float* from = image_ + offsets[p];
      for (int j = 0; j < Width; ++j) out[j] = from[at[j]];
    }
    return;
  }
  for (int64_t p = 0; p < k; ++p, out += Width) {
    const float* from = image_ + offsets[p];
    for (int j = 0; j < lanes; ++j) out[j] = from[at[j]];
    for (int j = lanes; j < Width; ++j) out[j] = 0;
  }
}

void ImagePanels::pack(int64_t k_begin, int64_t k, int64_t first, int64_t last, float* out) const {
  for (int64_t panel = first; panel < last; ++panel, out += k * width_) {
    switch (width_) {
      case 8:
        pack_panel<8>(k_begin, k, panel, out);
        break;
      case 12:
        pack_panel<12>(k_begin, k, panel, out);
        break;
      case 16:
        pack_panel<16>(k_begin, k, panel, out);
        break;
      default:
        pack_panel<32>(k_begin, k, panel, out);
        break;
    }
  }
}

}  // namespace tenon::kernels

#include "kernels/conv_nhwc/many_outputs.h"

#include <algorithm>
#include <cstring>

#include "base/checked.h"
#include "base/rounding.h"

namespace tenon::kernels {
namespace {

constexpr int64_t least_copied_bytes = 16 << 10;

int64_t window(const ConvShape& s, int axis) { return (s.kernel[axis] - 1) * s.dilation[axis] + 1; }

}  // namespace

NhwcSheet::NhwcSheet(const ConvShape& s) : s_(s), pixel_(nhwc_pixel(s.in_channels)), is_compact_(s.kernel[2] == 1) {
  step_ = is_compact_ ? 1 : s.stride[2];
  const int64_t width = (s.output[2] - 1) * s.stride[2] + window(s, 2);
  row_ = is_compact_ ? s.output[2] : divide_up(width, step_);
  planes_ = std::min(s.stride[1], window(s, 1));
  image_rows_ = s.output[1] + (window(s, 1) - 1) / s.stride[1];
}

int64_t NhwcSheet::output(int64_t position) const {
  const int64_t column = position % row_, row = position / row_ % image_rows_, image = position / row_ / image_rows_;
  if (column >= s_.output[2] || row >= s_.output[1] || image >= s_.batch) return -1;
  return (image * s_.output[1] + row) * s_.output[2] + column;
}

int64_t NhwcSheet::offset(int64_t tap) const {
  const int64_t row = tap / s_.kernel[2] * s_.dilation[1], column = tap % s_.kernel[2] * s_.dilation[2];
  const int64_t plane_row = row % s_.stride[1] * s_.batch * image_rows_ + row / s_.stride[1];
  return (plane_row * row_ * step_ + column) * pixel_;
}

int64_t NhwcSheet::bytes(int64_t positions) const {
  const int64_t planes = checked_mul(checked_mul(planes_ * s_.batch, image_rows_), checked_mul(row_ * step_, pixel_));
  return std::max(planes, checked_mul(positions, stride()) + offset(s_.kernel_size() - 1) + pixel_);
}

void NhwcSheet::fill_row(const uint8_t* image, int64_t row, uint8_t outside, uint8_t* to) const {
  const int64_t pixels = row_ * step_, move = is_compact_ ? s_.stride[2] : 1;
  const bool is_inside = row >= 0 && row < s_.input[1];
  // Those of the row that are in the image.
  const int64_t begin = std::min(pixels, divide_up(s_.pad[2], move));
  const int64_t end = std::clamp(divide_up(s_.input[2] + s_.pad[2], move), begin, pixels);
  if (!is_inside) {
    std::memset(to, outside, static_cast<size_t>(pixels * pixel_));
    return;
  }
  std::memset(to, outside, static_cast<size_t>(begin * pixel_));
  const uint8_t* from = image + (row * s_.input[2] + begin * move - s_.pad[2]) * pixel_;
  if (move == 1) {
    std::memcpy(to + begin * pixel_, from, static_cast<size_t>((end - begin) * pixel_));
  } else {
    for (int64_t i = begin; i < end; ++i, from += move * pixel_)
      std::memcpy(to + i * pixel_, from, static_cast<size_t>(pixel_));
  }
  std::memset(to + end * pixel_, outside, static_cast<size_t>((pixels - end) * pixel_));
}

void NhwcSheet::fill(ThreadPool& pool, const uint8_t* x, uint8_t outside, uint8_t* to) const {
  const int64_t rows = planes_ * s_.batch * image_rows_, row_bytes = row_ * step_ * pixel_;
  pool.parallel_for(rows, 1 + least_copied_bytes / (row_bytes + 1), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t row = i % image_rows_, image = i / image_rows_ % s_.batch, plane = i / image_rows_ / s_.batch;
      fill_row(x + image * s_.input_size() * pixel_, row * s_.stride[1] + plane - s_.pad[1], outside,
               to + i * row_bytes);
    }
  });
}

}  // namespace tenon::kernels

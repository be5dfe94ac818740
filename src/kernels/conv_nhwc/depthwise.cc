#include "kernels/conv_nhwc/depthwise.h"

#include <algorithm>
#include <cstring>

#include "kernels/scratch.h"

namespace tenon::kernels {
namespace {

constexpr int64_t least_copied_bytes = 16 << 10;

}  // namespace

class NhwcDepthwiseConv {
 public:
  NhwcDepthwiseConv(const ConvShape& shape, const NhwcConvWeights& weights, const NhwcRequantization& requantization)
      : s_(shape),
        weights_(weights),
        requantization_(requantization),
        window_(shape),
        pixel_(nhwc_pixel(s_.in_channels)),
        depthwise_(weights.kernels().depthwise[window_.outputs / 2]) {}

  void run(ThreadPool& pool, const uint8_t* x, uint8_t outside, uint8_t* y) const {
    const Scratch blank(static_cast<size_t>(pixel_));
    std::memset(blank.as<void>(), outside, static_cast<size_t>(pixel_));
    const int64_t rows = s_.batch * s_.output[1], row_bytes = s_.output[2] * pixel_;
    NhwcDepthwiseTile given{};
    requantization_.put(given, 0);
    given.quads = window_.quads;
    given.channels = pixel_;
    given.weights = weights_.panel(0);
    given.wide = weights_.wide_;
    const size_t count = weights_.wide_ > 0 ? requantization_.bias().size() : 0;
    const Scratch placed(count * (sizeof(int32_t) + sizeof(float)));
    if (count > 0) put_in_place(given, static_cast<int64_t>(count), placed.as<int32_t>());
    pool.parallel_for(rows, 1 + least_copied_bytes / (row_bytes * window_.quads + 1), [&](int64_t begin, int64_t end) {
      const Scratch memory(static_cast<size_t>(4 * window_.quads) * (sizeof(uint8_t*) + sizeof(int64_t)) +
                           static_cast<size_t>(window_.outputs * pixel_));
      const auto pixels = memory.as<const uint8_t*>();
      const auto moves = reinterpret_cast<int64_t*>(pixels + 4 * window_.quads);
      auto* spare = reinterpret_cast<uint8_t*>(moves + 4 * window_.quads);
      NhwcDepthwiseTile tile = given;
      tile.pixels = pixels;
      for (int64_t row = begin; row < end; ++row)
        compute_row(tile, x + row / s_.output[1] * s_.input[1] * s_.input[2] * pixel_, row % s_.output[1],
                    blank.as<uint8_t>(), pixels, moves, spare, y + row * row_bytes);
    });
  }

 private:
  // Bias and scales in the order of the weights.
  static void put_in_place(NhwcDepthwiseTile& tile, int64_t channels, int32_t* memory) {
    int32_t* bias = memory;
    auto* scales = reinterpret_cast<float*>(memory + channels);
    for (int64_t c = 0; c < tile.wide; c += 4) {
      const int64_t place = c / nhwc_wide * nhwc_wide + nhwc_wide_place(c % nhwc_wide);
      std::copy_n(tile.bias + c, 4, bias + place);
      std::copy_n(tile.scales + c, 4, scales + place);
    }
    std::copy(tile.bias + tile.wide, tile.bias + channels, bias + tile.wide);
    std::copy(tile.scales + tile.wide, tile.scales + channels, scales + tile.wide);
    tile.bias = bias;
    tile.scales = scales;
  }

  void compute_row(NhwcDepthwiseTile& tile, const uint8_t* image, int64_t row, const uint8_t* outside,
                   const uint8_t** pixels, int64_t* moves, uint8_t* spare, uint8_t* y) const {
    int64_t moved_to = -1;  // the column that `moves` lead to
    for (int64_t column = 0; column < s_.output[2]; column += window_.outputs) {
      // The last ones may be computed twice, or more of them than there are.
      const int64_t first = std::max<int64_t>(0, std::min(column, s_.output[2] - window_.outputs));
      if (first == moved_to && columns_are_inside(first)) {
        for (int64_t i = 0; i < 4 * window_.quads; ++i) pixels[i] += moves[i];
        moved_to += window_.outputs;
      } else {
        find_pixels(image, row, first, outside, pixels);
        if (columns_are_inside(first)) {
          const int64_t move = window_.outputs * s_.stride[2] * pixel_;
          for (int64_t i = 0; i < 4 * window_.quads; ++i) moves[i] = pixels[i] == outside ? 0 : move;
          moved_to = first + window_.outputs;
        }
      }
      const bool fits = s_.output[2] >= window_.outputs;
      tile.y = fits ? y + first * pixel_ : spare;
      depthwise_(tile);
      if (!fits) std::memcpy(y, spare, static_cast<size_t>(s_.output[2] * pixel_));
    }
  }

  // Of all that outputs from this column on read.
  bool columns_are_inside(int64_t column) const {
    const int64_t left = column * s_.stride[2] - s_.pad[2];
    return left >= 0 && left + (window_.width - 1) * s_.dilation[2] < s_.input[2];
  }

  void find_pixels(const uint8_t* image, int64_t row, int64_t column, const uint8_t* outside,
                   const uint8_t** pixels) const {
    const int64_t top = row * s_.stride[1] - s_.pad[1], left = column * s_.stride[2] - s_.pad[2];
    const uint8_t** end = pixels + 4 * window_.quads;
    const bool all_inside = columns_are_inside(column);
    for (int64_t i = 0; i < s_.kernel[1]; ++i) {
      const int64_t h = top + i * s_.dilation[1];
      if (h < 0 || h >= s_.input[1]) {
        pixels = std::fill_n(pixels, window_.width, outside);
        continue;
      }
      const uint8_t* line = image + h * s_.input[2] * pixel_;
      for (int64_t j = 0; j < window_.width; ++j) {
        const int64_t w = left + j * s_.dilation[2];
        *pixels++ = all_inside || (w >= 0 && w < s_.input[2]) ? line + w * pixel_ : outside;
      }
    }
    std::fill(pixels, end, outside);
  }

  const ConvShape& s_;
  const NhwcConvWeights& weights_;
  const NhwcRequantization& requantization_;
  const DepthwiseWindow window_;
  const int64_t pixel_;
  const NhwcConvKernels::Depthwise depthwise_;
};

void convolve_depthwise(ThreadPool& pool, const ConvShape& shape, const uint8_t* x, uint8_t outside,
                        const NhwcConvWeights& weights, const NhwcRequantization& requantization, uint8_t* y) {
  NhwcDepthwiseConv(shape, weights, requantization).run(pool, x, outside, y);
}

}  // namespace tenon::kernels

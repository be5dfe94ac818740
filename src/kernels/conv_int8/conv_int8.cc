#include "kernels/conv_int8/conv_int8.h"

#include <algorithm>
#include <cstring>
#include <optional>

#include "base/checked.h"
#include "base/rounding.h"
#include "kernels/conv/image.h"
#include "kernels/gemm_int8/transpose_bytes.h"

namespace tenon::kernels {
namespace {

constexpr int64_t block_bytes = 128 << 10;  // of packed patches, which are to stay in the L2 cache
constexpr int64_t rows_per_task = 4;

// The channels of one group as codes, channels last, surrounded by the zero point: then the steps of k that a kernel
// reads at once are neighbours. Channels are added to make whole groups of steps.
class PixelImage {
 public:
  PixelImage(const ConvShape& shape, const Int8Kernels& kernels)
      : shape_(shape),
        extent_(shape),
        channels_(shape.in_channels / shape.groups),
        pixel_(round_up(channels_, kernels.k_group)),
        memory_(static_cast<size_t>(checked_mul(extent_.total(), pixel_)) + 1) {}

  void fill(ThreadPool& pool, const uint8_t* image, uint8_t flip, uint8_t zero_code) {
    const int64_t rows = extent_.size[0] * extent_.size[1];
    pool.parallel_for(rows, rows_per_task, [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) {
        uint8_t* to = memory_.as<uint8_t>() + row * extent_.size[2] * pixel_;
        fill_row(image, row / extent_.size[1] - shape_.pad[0], row % extent_.size[1] - shape_.pad[1], flip, zero_code,
                 to);
      }
    });
  }

  const uint8_t* data() const { return memory_.as<uint8_t>(); }
  int64_t pixel() const { return pixel_; }
  // Bytes to the pixel at these coordinates of the padded image.
  int64_t offset(int64_t d, int64_t h, int64_t w) const {
    return ((d * extent_.size[1] + h) * extent_.size[2] + w) * pixel_;
  }

 private:
  // Row (d, h) of the input, which may lie outside it.
  void fill_row(const uint8_t* image, int64_t d, int64_t h, uint8_t flip, uint8_t zero_code, uint8_t* to) const {
    const bool inside = d >= 0 && d < shape_.input[0] && h >= 0 && h < shape_.input[1];
    const int64_t width = extent_.size[2];
    const int64_t left = inside ? std::clamp<int64_t>(shape_.pad[2], 0, width) : width;
    const int64_t right = inside ? std::clamp<int64_t>(shape_.pad[2] + shape_.input[2], left, width) : width;
    std::memset(to, zero_code, static_cast<size_t>(width * pixel_));
    if (left == right) return;
    const uint8_t* row = image + (d * shape_.input[1] + h) * shape_.input[2] + left - shape_.pad[2];
    to += left * pixel_;
    int64_t c = 0;
    for (; c + 8 <= channels_; c += 8) take_channels<8>(row + c * shape_.input_size(), right - left, flip, to + c);
    for (; c < channels_; ++c) take_channels<1>(row + c * shape_.input_size(), right - left, flip, to + c);
  }

  // `count` pixels of a row of some channels that follow each other.
  template <int channels>
  void take_channels(const uint8_t* row, int64_t count, uint8_t flip, uint8_t* to) const {
    const int64_t plane = shape_.input_size();
    int64_t w = 0;
    for (; channels == 8 && w + 8 <= count; w += 8) {
      uint64_t words[8];
      for (int64_t c = 0; c < 8; ++c) {
        std::memcpy(&words[c], row + c * plane + w, 8);
        words[c] ^= 0x0101010101010101u * flip;
      }
      transpose_bytes(words);
      for (int64_t i = 0; i < 8; ++i) std::memcpy(to + (w + i) * pixel_, &words[i], 8);
    }
    for (; w < count; ++w) {
      for (int64_t c = 0; c < channels; ++c) to[w * pixel_ + c] = static_cast<uint8_t>(row[c * plane + w] ^ flip);
    }
  }

  const ConvShape& shape_;
  PaddedExtent extent_;
  int64_t channels_, pixel_;
  Scratch memory_;
};

// Patches of an image as the right side of a product, for some of the outputs.
template <int Group>
void pack_patches(const ConvShape& s, const PixelImage& image, const std::vector<int64_t>& taps, int64_t first,
                  const BytePanels& to) {
  const int width = to.width();
  uint8_t* out = to.codes;
  const auto unused = static_cast<size_t>((to.steps() - to.k) * width);
  for (int64_t lane = 0; lane < to.lanes; lane += width) {
    const uint8_t* at[most_int8_tile_columns];
    for (int j = 0; j < width; ++j) {
      // Lanes past the last one repeat it: nobody reads their results.
      const int64_t o = first + std::min(lane + j, to.lanes - 1);
      at[j] = image.data() + image.offset(o / s.output[2] / s.output[1] * s.stride[0],
                                          o / s.output[2] % s.output[1] * s.stride[1], o % s.output[2] * s.stride[2]);
    }
    for (int64_t tap : taps) {
      int64_t c = 0;
      for (; Group == 4 && c + 16 <= image.pixel(); c += 16, out += 16 * width) {
        for (int j = 0; j < width; j += 4) interleave_by_fours(at + j, tap + c, 0, out + 4 * j, 4 * width);
      }
      for (; c < image.pixel(); c += Group) {
        for (int j = 0; j < width; ++j, out += Group) std::memcpy(out, at[j] + tap + c, Group);
      }
    }
    std::memset(out, 0, unused);
    out += unused;
  }
}

void pack_patches(const ConvShape& s, const PixelImage& image, const std::vector<int64_t>& taps, int64_t first,
                  int32_t zero, const BytePanels& to) {
  switch (to.kernels->k_group) {
    case 1:
      pack_patches<1>(s, image, taps, first, to);
      break;
    case 2:
      pack_patches<2>(s, image, taps, first, to);
      break;
    case 4:
      pack_patches<4>(s, image, taps, first, to);
      break;
    default:
      pack_patches<8>(s, image, taps, first, to);
      break;
  }
  std::fill_n(to.zeros, to.panels() * to.width(), zero);
  sum_panels(nullptr, to);
}

// Whether outputs are sums over the channels of one pixel each, in order.
bool is_product(const ConvShape& s) {
  for (int i = 0; i < 3; ++i) {
    if (s.kernel[i] != 1 || s.stride[i] != 1 || s.pad[i] != 0 || s.output[i] != s.input[i]) return false;
  }
  return true;
}

std::vector<int64_t> tap_offsets(const ConvShape& s, const PixelImage& image) {
  std::vector<int64_t> taps;
  for (int64_t d = 0; d < s.kernel[0]; ++d) {
    for (int64_t h = 0; h < s.kernel[1]; ++h) {
      for (int64_t w = 0; w < s.kernel[2]; ++w) {
        taps.push_back(image.offset(d * s.dilation[0], h * s.dilation[1], w * s.dilation[2]));
      }
    }
  }
  return taps;
}

// One group's weights as rows of [tap, channel], with as many channels as a pixel has. Those that are added equal the
// zero point, so that they count for nothing.
std::vector<uint8_t> pixel_rows(const uint8_t* from, int64_t rows, int64_t channels, int64_t taps, int64_t pixel,
                                ByteZeroPoints zeros) {
  std::vector<uint8_t> matrix(static_cast<size_t>(rows * taps * pixel));
  for (int64_t row = 0; row < rows; ++row, from += channels * taps) {
    const int32_t zero = zeros.data ? zeros.data[zeros.by_lane ? row : 0] : 0;
    uint8_t* to = matrix.data() + row * taps * pixel;
    std::memset(to, zero & 0xff, static_cast<size_t>(taps * pixel));
    for (int64_t c = 0; c < channels; ++c) {
      for (int64_t tap = 0; tap < taps; ++tap) to[tap * pixel + c] = from[c * taps + tap];
    }
  }
  return matrix;
}

}  // namespace

PackedByteConvWeights::PackedByteConvWeights(ThreadPool& pool, const ConvShape& shape, const void* weights,
                                             bool is_signed, ByteZeroPoints zeros, const Int8Kernels& kernels,
                                             PackedStorage& storage) {
  const int64_t channels = shape.in_channels / shape.groups, rows = shape.out_channels / shape.groups;
  const int64_t pixel = round_up(channels, kernels.k_group), taps = shape.kernel_size();
  for (int64_t g = 0; g < shape.groups; ++g) {
    const ByteZeroPoints own{zeros.data && zeros.by_lane ? zeros.data + g * rows : zeros.data, zeros.by_lane};
    std::vector<uint8_t> matrix;
    if (storage.fills()) {
      const auto* from = static_cast<const uint8_t*>(weights) + g * rows * channels * taps;
      matrix = pixel_rows(from, rows, channels, taps, pixel, own);
    }
    groups_.emplace_back(pool, GemmSide::left, rows, taps * pixel, ByteMatrix{matrix.data(), is_signed, taps * pixel},
                         own, kernels, storage);
  }
}

size_t PackedByteConvWeights::bytes() const {
  size_t total = 0;
  for (const PackedBytes& group : groups_) total += group.panels().bytes();
  return total;
}

void conv_int8(ThreadPool& pool, const ConvShape& s, const void* x, bool is_signed, int32_t zero,
               const PackedByteConvWeights& weights, const int32_t* bias, int32_t* y) {
  const int64_t outputs = s.output_size(), rows = s.out_channels / s.groups, channels = s.in_channels / s.groups;
  if (outputs == 0 || rows == 0 || s.batch == 0) return;
  const BytePanels& first_left = weights.groups_.front().panels();
  // An image that is a matrix already is packed as one.
  std::optional<PixelImage> image;
  std::vector<int64_t> taps;
  if (!is_product(s) || channels % first_left.kernels->k_group != 0) {
    image.emplace(s, *first_left.kernels);
    taps = tap_offsets(s, *image);
  }
  BytePanels right{first_left.kernels, GemmSide::right, 0, first_left.k, nullptr, nullptr, nullptr};
  const int32_t code = zero + right.shift(is_signed);
  const int64_t block =
      round_up(std::clamp<int64_t>(block_bytes / (right.k + 1), 1, outputs / pool.size() + 1), right.width());
  for (int64_t item = 0; item < s.batch * s.groups; ++item) {
    const BytePanels& left = weights.groups_[static_cast<size_t>(item % s.groups)].panels();
    const uint8_t* from = static_cast<const uint8_t*>(x) + item * channels * s.input_size();
    if (image) image->fill(pool, from, right.flip(is_signed), static_cast<uint8_t>(code));
    const int32_t* own_bias = bias ? bias + item % s.groups * rows : nullptr;
    int32_t* to = y + item * rows * outputs;
    pool.parallel_for((outputs + block - 1) / block, 1, [&](int64_t begin, int64_t end) {
      BytePanels own = right;
      own.lanes = block;
      const Scratch memory(own.bytes());
      for (int64_t i = begin; i < end; ++i) {
        own.lanes = std::min(block, outputs - i * block);
        own.place(memory.as<void>());
        if (image)
          pack_patches(s, *image, taps, i * block, code, own);
        else
          pack_panels(nullptr, own, {from + i * block, is_signed, outputs}, {&zero});
        multiply_panels(nullptr, left, own, own_bias, to + i * block, outputs);
      }
    });
  }
}

}  // namespace tenon::kernels

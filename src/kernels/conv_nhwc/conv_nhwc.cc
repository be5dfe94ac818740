#include "kernels/conv_nhwc/conv_nhwc.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/checked.h"
#include "base/cpu_features.h"
#include "base/rounding.h"
#include "kernels/scratch.h"

namespace tenon::kernels {
namespace {

// The share of the second cache that the weights of some output channels fill, while all pixels pass by.
constexpr double cache_share = 0.5;
// Parts of the work for each thread, at least: CPUs need not be equally fast.
constexpr int64_t parts_per_thread = 4;
constexpr int64_t least_products_to_share = 1 << 18;
constexpr int64_t least_copied_bytes = 16 << 10;
// Pixels of fewer bytes are copied: all that an output reads, side by side.
constexpr int64_t narrow_pixel = 16;
// Tiles whose patches are copied before the first is multiplied.
constexpr int64_t tiles_prepared = 8;
// Bytes that are copied at once.
constexpr int64_t chunk = 16;
constexpr double small_limit = 1 << 22, tiny_limit = 32767;

bool takes_patches(const ConvShape& s) {
  const int64_t pixel = nhwc_pixel(s.in_channels);
  return pixel < 4 || (pixel < narrow_pixel && s.kernel_size() > 1);
}

// Whether every output reads the one pixel that is where it is.
bool is_pointwise(const ConvShape& s) {
  return s.kernel_size() == 1 && s.stride[1] == 1 && s.stride[2] == 1 && s.pad[1] == 0 && s.pad[2] == 0 &&
         s.output[1] == s.input[1] && s.output[2] == s.input[2];
}

// Where pixels are few bytes, whether a row of the window, which lies side by side in a row of the image, is a tap.
// Otherwise the whole window is one, copied side by side: fewer bytes are left over, which pays where many channels
// are computed of them.
bool joins_rows(const ConvShape& s, const NhwcConvKernels& kernels) {
  constexpr int64_t many_channels = 64;
  return takes_patches(s) && kernels.joins_rows && s.dilation[2] == 1 && s.out_channels < many_channels;
}

int64_t tap_count(const ConvShape& s, const NhwcConvKernels& kernels) {
  if (!takes_patches(s)) return s.kernel_size();
  return joins_rows(s, kernels) ? s.kernel[1] : 1;
}

// Bytes that a tap reads.
int64_t tap_bytes(const ConvShape& s, const NhwcConvKernels& kernels) {
  const int64_t pixel = nhwc_pixel(s.in_channels);
  return takes_patches(s) ? round_up(s.kernel_size() / tap_count(s, kernels) * pixel, chunk) : pixel;
}

// How a depthwise convolution computes neighbouring outputs at once: the pixels they read in each row of the window, in
// groups of four. Otherwise what one output reads is a list of pixels, in groups of four.
struct DepthwiseWindow {
  explicit DepthwiseWindow(const ConvShape& s) : rows(s.kernel[1]), kernel(s.kernel[2]) {
    const bool is_dense = s.stride[2] == 1 && s.dilation[2] == 1;
    if (is_dense && kernel == 5) outputs = 4;
    if (is_dense && (kernel == 3 || kernel == 7)) outputs = 2;
    width = kernel + outputs - 1;
    quads = divide_up(rows * width, 4);
  }
  // Which tap pixel i is to output j; -1: none.
  int64_t tap(int64_t i, int64_t j) const {
    const int64_t row = i / width, column = i % width - j;
    return column >= 0 && column < kernel && row < rows ? row * kernel + column : -1;
  }

  int64_t rows, kernel, outputs = 1, width, quads;
};

}  // namespace

std::vector<const NhwcConvKernels*> available_nhwc_conv_kernels() {
  std::vector<const NhwcConvKernels*> result = {&nhwc_conv_kernels_portable};
  [[maybe_unused]] const Isa isa = best_isa();
#if defined(__aarch64__)
  if (isa == Isa::neon && cpu_features().dotprod) result.push_back(&nhwc_conv_kernels_neon_dotprod);
  if (isa == Isa::neon && cpu_features().i8mm) {
    result.push_back(&nhwc_conv_kernels_neon_i8mm_unsigned);
    result.push_back(&nhwc_conv_kernels_neon_i8mm);
  }
#elif defined(__x86_64__)
  if (isa == Isa::avx2 || isa == Isa::avx512) result.push_back(&nhwc_conv_kernels_avx2);
  if (isa == Isa::avx512 && cpu_features().avx512_vnni) result.push_back(&nhwc_conv_kernels_avx512_vnni);
  if (isa == Isa::avx512 && cpu_features().amx) result.push_back(&nhwc_conv_kernels_amx);
#endif
  return result;
}

const NhwcConvKernels& nhwc_conv_kernels(bool unsigned_pixels) {
  const NhwcConvKernels& best = *available_nhwc_conv_kernels().back();
  return best.unsigned_pixels != unsigned_pixels && best.other_pixels ? *best.other_pixels : best;
}

NhwcConvWeights::NhwcConvWeights(ThreadPool& pool, const ConvShape& s, const int8_t* weights,
                                 const NhwcConvKernels& kernels, PackedStorage& storage)
    : kernels_(&kernels), is_depthwise_(s.groups > 1) {
  if (is_depthwise_) {
    const DepthwiseWindow window(s);
    columns_ = nhwc_lanes;
    steps_ = window.quads;
    panel_bytes_ = window.quads * window.outputs * nhwc_lanes * 4;
    if (kernels.wide_depthwise) wide_ = nhwc_wide_channels(nhwc_pixel(s.out_channels));
  } else {
    columns_ = kernels.columns;
    steps_ = tap_count(s, kernels);
    panel_bytes_ = round_up(steps_ * round_up(tap_bytes(s, kernels), kernels.group), kernels.step) * columns_;
  }
  panels_ = divide_up(std::max(s.out_channels, wide_), columns_);
  const int64_t channels = panels_ * columns_, sums_bytes = 2 * channels * int64_t{sizeof(int32_t)};
  buffer_ = storage.get(static_cast<size_t>(sums_bytes + panels_ * panel_bytes_), [&](void* memory) {
    std::memset(memory, 0, static_cast<size_t>(sums_bytes + panels_ * panel_bytes_));
    auto* sums = static_cast<int32_t*>(memory);
    const int64_t per_channel = s.in_channels / s.groups * s.kernel_size();
    for (int64_t channel = 0; channel < s.out_channels; ++channel) {
      const int8_t* own = weights + channel * per_channel;
      int32_t positive = 0, negative = 0;
      for (int64_t i = 0; i < per_channel; ++i) {
        positive += std::max<int32_t>(own[i], 0);
        negative += std::min<int32_t>(own[i], 0);
      }
      sums[channel] = positive;
      sums[channels + channel] = negative;
    }
    auto* codes = static_cast<int8_t*>(memory) + sums_bytes;
    if (is_depthwise_)
      pack_quads(s, weights, codes);
    else
      pack_panels(pool, s, weights, codes);
  });
}

void NhwcConvWeights::pack_panels(ThreadPool& pool, const ConvShape& s, const int8_t* weights, int8_t* to) const {
  const int64_t pixel = nhwc_pixel(s.in_channels), joined = s.kernel_size() / steps_, group = kernels_->group;
  const int64_t bytes = round_up(tap_bytes(s, *kernels_), group);
  pool.parallel_for(s.out_channels, columns_, [&](int64_t begin, int64_t end) {
    for (int64_t out = begin; out < end; ++out) {
      int8_t* panel = to + out / columns_ * panel_bytes_ + out % columns_ * group;
      const int8_t* from = weights + out * s.in_channels * s.kernel_size();
      for (int64_t k = 0; k < s.kernel_size(); ++k) {
        int8_t* tap = panel + k / joined * bytes * columns_;
        const int64_t first = k % joined * pixel;
        for (int64_t byte = first; byte < first + s.in_channels; ++byte)
          tap[(byte & -group) * columns_ + (byte & (group - 1))] = from[(byte - first) * s.kernel_size() + k];
      }
    }
  });
}

void NhwcConvWeights::pack_quads(const ConvShape& s, const int8_t* weights, int8_t* to) const {
  const DepthwiseWindow window(s);
  for (int64_t c = 0; c < s.out_channels; ++c) {
    const int64_t block = c < wide_ ? nhwc_wide : nhwc_lanes;
    const int64_t place = c < wide_ ? nhwc_wide_place(c % block) : c % block;
    int8_t* lane = to + c / block * (block / nhwc_lanes) * panel_bytes_ + place * 4;
    for (int64_t i = 0; i < 4 * window.quads; ++i) {
      for (int64_t j = 0; j < window.outputs; ++j) {
        const int64_t tap = window.tap(i, j);
        if (tap >= 0) lane[(i / 4 * window.outputs + j) * 4 * block + i % 4] = weights[c * s.kernel_size() + tap];
      }
    }
  }
}

NhwcWeightSums NhwcConvWeights::sums() const {
  const auto count = static_cast<size_t>(panels_ * columns_);
  const auto* first = buffer_.as<int32_t>();
  return {{first, count}, {first + count, count}};
}

const uint8_t* NhwcConvWeights::panel(int64_t number) const {
  return buffer_.as<uint8_t>() + 2 * panels_ * columns_ * int64_t{sizeof(int32_t)} + number * panel_bytes_;
}

NhwcRequantization::NhwcRequantization(const NhwcConvKernels& kernels, NhwcWeightSums sums, int32_t x_zero,
                                       std::span<const int32_t> bias, std::span<const float> scales, int32_t zero,
                                       bool is_signed)
    : bias_(sums.positive.size()), scales_(sums.positive.size()), zero_(zero), is_signed_(is_signed) {
  const int lowest = kernels.unsigned_pixels ? 0 : -128;
  const double below = x_zero - lowest, above = lowest + 255 - x_zero;
  bool is_small = true, is_tiny = true;
  for (size_t i = 0; i < bias_.size(); ++i) {
    const int32_t positive = sums.positive[i], negative = sums.negative[i];
    const auto sum = static_cast<uint32_t>(positive) + static_cast<uint32_t>(negative);
    const int32_t own = i < bias.size() ? bias[i] : 0;
    bias_[i] = static_cast<int32_t>(static_cast<uint32_t>(own) - static_cast<uint32_t>(x_zero) * sum);
    scales_[i] = scales.size() == 1 ? scales[0] : i < scales.size() ? scales[i] : 0;
    const double largest = std::abs(static_cast<double>(own)) +
                           std::max(above * positive - below * negative, below * positive - above * negative);
    const double scaled = largest * std::abs(static_cast<double>(scales_[i]));  // maybe not a number
    is_small = is_small && largest < small_limit && scaled < small_limit;
    is_tiny = is_tiny && scaled < tiny_limit;
  }
  range_ = !is_small ? NhwcRange::any : is_tiny ? NhwcRange::tiny : NhwcRange::small;
  if (!is_small || !kernels.shifts) return;
  for (int32_t& b : bias_) b = static_cast<int32_t>(static_cast<uint32_t>(b) + static_cast<uint32_t>(nhwc_shift_bits));
}

class NhwcConv {
 public:
  NhwcConv(const ConvShape& shape, const NhwcConvWeights& weights, const NhwcRequantization& requantization)
      : s_(shape),
        weights_(weights),
        kernels_(weights.kernels()),
        requantization_(requantization),
        takes_patches_(takes_patches(shape)),
        joins_rows_(joins_rows(shape, kernels_)),
        is_pointwise_(is_pointwise(shape)),
        pixel_(nhwc_pixel(s_.in_channels)),
        bytes_(tap_bytes(shape, kernels_)),
        outputs_(s_.batch * s_.output_size()),
        width_(takes_patches_ ? (s_.output[2] - 1) * s_.stride[2] + (s_.kernel[2] - 1) * s_.dilation[2] + 1
                              : s_.input[2]) {}

  void run(ThreadPool& pool, const uint8_t* x, uint8_t outside, uint8_t* y) {
    const int64_t rows = s_.batch * s_.input[1], row_bytes = checked_mul(width_, pixel_);
    const Scratch copy(takes_patches_ ? static_cast<size_t>(checked_mul(rows, row_bytes) + chunk) : 0);
    const auto blank_bytes = static_cast<size_t>(std::max(row_bytes, bytes_) + chunk);
    const Scratch blank(blank_bytes);
    std::memset(blank.as<void>(), outside, blank_bytes);
    outside_ = blank.as<uint8_t>();
    x_ = x;
    if (takes_patches_) {
      pool.parallel_for(rows, 1 + least_copied_bytes / (row_bytes + 1), [&](int64_t begin, int64_t end) {
        for (int64_t row = begin; row < end; ++row) pad_row(x, outside, row, copy.as<uint8_t>());
      });
      x_ = copy.as<uint8_t>();
    }
    y_ = y;
    multiply(pool);
  }

 private:
  // A row of the image between what lies left and right of it.
  void pad_row(const uint8_t* x, uint8_t outside, int64_t row, uint8_t* copy) const {
    const int64_t left = std::min(s_.pad[2], width_), inside = std::min(s_.input[2], width_ - left);
    uint8_t* to = copy + row * width_ * pixel_;
    std::memset(to, outside, static_cast<size_t>(left * pixel_));
    std::memcpy(to + left * pixel_, x + row * s_.input[2] * pixel_, static_cast<size_t>(inside * pixel_));
    std::memset(to + (left + inside) * pixel_, outside, static_cast<size_t>((width_ - left - inside) * pixel_));
  }

  void multiply(ThreadPool& pool) const {
    const int64_t tiles = divide_up(outputs_, kernels_.rows);
    const auto cached =
        static_cast<int64_t>(cache_share * static_cast<double>(cpu_features().l2_bytes)) / weights_.panel_bytes_;
    int64_t at_once = std::clamp<int64_t>(cached, 1, weights_.panels_);
    const int64_t products = outputs_ * weights_.panels_ * weights_.panel_bytes_;
    const int64_t parts = pool.size() == 1 || products < least_products_to_share ? 1 : parts_per_thread * pool.size();
    if (tiles < parts) at_once = std::min(at_once, divide_up(weights_.panels_, divide_up(parts, tiles)));
    const int64_t blocks = divide_up(weights_.panels_, at_once);
    // Patches are read long after they are written: a register does not wait for bytes that are still on their way.
    const bool copies = takes_patches_ && !joins_rows_;
    const int64_t prepared = copies ? tiles_prepared : 1, patch = copies ? kernels_.rows * bytes_ : 0;
    const int64_t pointers = kernels_.rows * weights_.steps_;
    pool.parallel_for(tiles * blocks, divide_up(tiles * blocks, parts), [&](int64_t begin, int64_t end) {
      const Scratch memory(static_cast<size_t>(prepared * pointers) * sizeof(uint8_t*) +
                           static_cast<size_t>(prepared * patch + chunk));
      const auto pixels = memory.as<const uint8_t*>();
      auto* patches = reinterpret_cast<uint8_t*>(pixels + prepared * pointers);
      if (kernels_.enter) kernels_.enter();
      for (int64_t i = begin, count; i < end; i += count) {
        const int64_t tile = i % tiles, panel = i / tiles * at_once;
        count = std::min({prepared, end - i, tiles - tile});
        // All tiles have the same number of pixels, or one more.
        const auto first = [&](int64_t k) { return outputs_ * (tile + k) / tiles; };
        for (int64_t k = 0; k < count; ++k)
          prepare(first(k), first(k + 1) - first(k), pixels + k * pointers, patches + k * patch);
        for (int64_t k = 0; k < count; ++k)
          multiply_tile(first(k), first(k + 1) - first(k), panel, std::min(panel + at_once, weights_.panels_),
                        pixels + k * pointers);
      }
      if (kernels_.leave) kernels_.leave();
    });
  }

  // Where the pixels are that some outputs read, copied side by side where they are few bytes each.
  void prepare(int64_t first, int64_t rows, const uint8_t** pixels, uint8_t* patches) const {
    if (is_pointwise_) {
      for (int64_t row = 0; row < rows; ++row) pixels[row] = x_ + (first + row) * pixel_;
      return;
    }
    Window at = window(first);
    for (int64_t row = 0; row < rows; ++row, next(at)) {
      if (joins_rows_) {
        find_rows(at, rows, pixels + row);
      } else if (takes_patches_) {
        copy_patch(at, patches + row * bytes_);
        pixels[row] = patches + row * bytes_;
      } else {
        find_pixels(at, rows, pixels + row);
      }
    }
  }

  void multiply_tile(int64_t first, int64_t rows, int64_t panel, int64_t panel_end,
                     const uint8_t* const* pixels) const {
    const int64_t column = panel * kernels_.columns;
    NhwcTile tile{};
    requantization_.put(tile, column);
    tile.taps = weights_.steps_;
    tile.bytes = bytes_;
    tile.pixels = pixels;
    tile.panels = panel_end - panel;
    tile.weights = weights_.panel(panel);
    tile.pixel = nhwc_pixel(s_.out_channels);
    tile.y = y_ + first * tile.pixel + column;
    tile.stored = tile.pixel - column;
    kernels_.multiply[rows - 1](tile);
  }

  // What an output reads. `left` may lie outside the image, and so may `top`.
  struct Window {
    int64_t image, row, column;  // of the output; `image` is the row of the input at which its image begins
    int64_t top, left;
  };
  Window window(int64_t output) const {
    const int64_t row = output / s_.output[2];
    Window at{row / s_.output[1] * s_.input[1], row % s_.output[1], output % s_.output[2], 0, 0};
    at.top = at.row * s_.stride[1] - s_.pad[1];
    at.left = at.column * s_.stride[2] - (takes_patches_ ? 0 : s_.pad[2]);
    return at;
  }
  // That of the next output.
  void next(Window& at) const {
    at.left += s_.stride[2];
    if (++at.column < s_.output[2]) return;
    at.column = 0;
    at.left = takes_patches_ ? 0 : -s_.pad[2];
    at.top += s_.stride[1];
    if (++at.row < s_.output[1]) return;
    at.row = 0;
    at.top = -s_.pad[1];
    at.image += s_.input[1];
  }

  // Where the pixels are that an output reads; `step` lie between those of two taps.
  void find_pixels(const Window& at, int64_t step, const uint8_t** pixels) const {
    for (int64_t i = 0; i < s_.kernel[1]; ++i) {
      const int64_t h = at.top + i * s_.dilation[1];
      const bool is_inside = h >= 0 && h < s_.input[1];
      const uint8_t* line = is_inside ? x_ + (at.image + h) * width_ * pixel_ : nullptr;
      for (int64_t j = 0; j < s_.kernel[2]; ++j, pixels += step) {
        const int64_t w = at.left + j * s_.dilation[2];
        *pixels = is_inside && w >= 0 && w < width_ ? line + w * pixel_ : outside_;
      }
    }
  }

  // Where the rows are that an output reads; `step` lie between two.
  void find_rows(const Window& at, int64_t step, const uint8_t** pixels) const {
    for (int64_t i = 0; i < s_.kernel[1]; ++i, pixels += step) {
      const int64_t h = at.top + i * s_.dilation[1];
      const bool is_inside = h >= 0 && h < s_.input[1];
      *pixels = is_inside ? x_ + ((at.image + h) * width_ + at.left) * pixel_ : outside_;
    }
  }

  // What an output reads, side by side.
  void copy_patch(const Window& at, uint8_t* to) const {
    const int64_t pieces = s_.dilation[2] == 1 ? 1 : s_.kernel[2], bytes = s_.kernel[2] / pieces * pixel_;
    for (int64_t i = 0; i < s_.kernel[1]; ++i) {
      const int64_t h = at.top + i * s_.dilation[1];
      const bool is_inside = h >= 0 && h < s_.input[1];
      const uint8_t* line = is_inside ? x_ + ((at.image + h) * width_ + at.left) * pixel_ : outside_;
      for (int64_t j = 0; j < pieces; ++j, to += bytes) {
        const uint8_t* from = line + j * s_.dilation[2] * pixel_;
        // What is copied too much the next piece overwrites, or weights of zero multiply.
        for (int64_t c = 0; c < bytes; c += chunk) std::memcpy(to + c, from + c, chunk);
      }
    }
  }

  const ConvShape& s_;
  const NhwcConvWeights& weights_;
  const NhwcConvKernels& kernels_;
  const NhwcRequantization& requantization_;
  const bool takes_patches_, joins_rows_, is_pointwise_;
  const int64_t pixel_, bytes_, outputs_;
  const int64_t width_;  // of a row of x_, in pixels
  const uint8_t *x_ = nullptr, *outside_ = nullptr;
  uint8_t* y_ = nullptr;
};

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

void conv_nhwc(ThreadPool& pool, const ConvShape& shape, const uint8_t* x, uint8_t outside,
               const NhwcConvWeights& weights, const NhwcRequantization& requantization, uint8_t* y) {
  if (shape.batch * shape.output_size() * shape.out_channels == 0) return;
  if (shape.groups > 1)
    NhwcDepthwiseConv(shape, weights, requantization).run(pool, x, outside, y);
  else
    NhwcConv(shape, weights, requantization).run(pool, x, outside, y);
}

}  // namespace tenon::kernels

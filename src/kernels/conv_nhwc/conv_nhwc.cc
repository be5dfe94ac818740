#include "kernels/conv_nhwc/conv_nhwc.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>

#include "base/checked.h"
#include "base/cpu_features.h"
#include "base/rounding.h"
#include "kernels/conv_nhwc/depthwise.h"
#include "kernels/conv_nhwc/many_outputs.h"
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
// Rows of a window whose lines are remembered.
constexpr int64_t most_lines = 16;
// Rows of many outputs at once, in the second cache: those that are read where they are, and those that are copied.
constexpr int64_t rows_cached = 1 << 20, rows_copied = 128 << 10;
// Of copies of whole images; pixels of larger ones are copied for some outputs at a time.
constexpr int64_t most_sheet_bytes = 16 << 20;

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
  for (size_t i = 0; i < bias_.size(); ++i) {
    const int32_t positive = sums.positive[i], negative = sums.negative[i];
    const auto sum = static_cast<uint32_t>(positive) + static_cast<uint32_t>(negative);
    const int32_t own = i < bias.size() ? bias[i] : 0;
    bias_[i] = static_cast<int32_t>(static_cast<uint32_t>(own) - static_cast<uint32_t>(x_zero) * sum);
    scales_[i] = scales.size() == 1 ? scales[0] : i < scales.size() ? scales[i] : 0;
    const double largest = std::abs(static_cast<double>(own)) +
                           std::max(above * positive - below * negative, below * positive - above * negative);
    range_ = std::min(range_, code_range(largest, scales_[i]));
  }
  if (range_ == CodeRange::any || !kernels.shifts) return;
  for (int32_t& b : bias_) b = static_cast<int32_t>(static_cast<uint32_t>(b) + static_cast<uint32_t>(code_shift_bits));
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
                              : s_.input[2]) {
    int64_t distance = 0;
    for (int64_t& of_output : distances_) of_output = std::exchange(distance, distance + s_.stride[2] * pixel_);
  }

  void run(ThreadPool& pool, const uint8_t* x, uint8_t outside, uint8_t* y) {
    const int64_t rows = s_.batch * s_.input[1], row_bytes = checked_mul(width_, pixel_);
    const Scratch copy(takes_patches_ ? static_cast<size_t>(checked_mul(rows, row_bytes) + 2 * chunk) : 0);
    const auto blank_bytes = static_cast<size_t>(std::max(row_bytes, bytes_) + 2 * chunk);
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
    const bool are_many = outputs_ > kernels_.rows && weights_.steps_ * bytes_ > kernels_.few_bytes;
    if (!kernels_.to_codes || !are_many) return multiply(pool);
    if (is_pointwise_ || takes_patches_ || bytes_ % code_step_bytes != 0) return multiply_many(pool, nullptr);
    const NhwcSheet sheet(s_);
    const int64_t sheet_bytes = sheet.bytes(round_up<int64_t>(sheet.positions(), code_tile_rows));
    if (sheet_bytes > most_sheet_bytes) return multiply_many(pool, nullptr);
    const Scratch memory(static_cast<size_t>(sheet_bytes));
    sheet.fill(pool, x, outside, memory.as<uint8_t>());
    x_ = memory.as<uint8_t>();
    multiply_many(pool, &sheet);
  }

 private:
  // What an output reads. `left` may lie outside the image, and so may `top`.
  struct Window {
    int64_t image, row, column;  // of the output; `image` is the row of the input at which its image begins
    int64_t top, left;
  };

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
    // All tiles have the same number of pixels, or one more.
    const int64_t least_rows = outputs_ / tiles, longer = outputs_ % tiles;
    const auto first = [&](int64_t tile) { return tile * least_rows + std::min(tile, longer); };
    const auto rows_of = [&](int64_t tile) { return least_rows + (tile < longer ? 1 : 0); };
    pool.parallel_for(tiles * blocks, divide_up(tiles * blocks, parts), [&](int64_t begin, int64_t end) {
      const Scratch memory(static_cast<size_t>(prepared * pointers) * sizeof(uint8_t*) +
                           static_cast<size_t>(prepared * patch + chunk));
      const auto pixels = memory.as<const uint8_t*>();
      auto* patches = reinterpret_cast<uint8_t*>(pixels + prepared * pointers);
      if (kernels_.enter) kernels_.enter();
      int64_t tile = begin % tiles, panel = begin / tiles * at_once;
      Window at = window(first(tile));
      for (int64_t i = begin, count; i < end; i += count) {
        count = std::min({prepared, end - i, tiles - tile});
        for (int64_t k = 0; k < count; ++k)
          prepare(at, first(tile + k), rows_of(tile + k), pixels + k * pointers, patches + k * patch);
        for (int64_t k = 0; k < count; ++k)
          multiply_tile(first(tile + k), rows_of(tile + k), panel, std::min(panel + at_once, weights_.panels_),
                        pixels + k * pointers);
        tile += count;
        if (tile == tiles) {
          tile = 0;
          panel += at_once;
          at = window(0);
        }
      }
      if (kernels_.leave) kernels_.leave();
    });
  }

  // Where rows of many outputs at once are. Those of the sheet, if there is one, and whole pixels that are outputs
  // themselves are read where they are; others are copied.
  struct ManyOutputs {
    const NhwcSheet* sheet;
    int64_t steps, positions, tiles;
    std::vector<int64_t> offsets;
  };

  ManyOutputs many_outputs(const NhwcSheet* sheet) const {
    const int64_t steps = weights_.panel_bytes_ / (code_step_bytes * code_tile_columns);
    const int64_t positions = sheet ? sheet->positions() : outputs_, tap_steps = bytes_ / code_step_bytes;
    ManyOutputs many{sheet, steps, positions, divide_up<int64_t>(positions, code_tile_rows), {}};
    for (int64_t i = 0; i < steps; ++i)
      many.offsets.push_back(sheet ? sheet->offset(i / tap_steps) + i % tap_steps * code_step_bytes
                                   : i * code_step_bytes);
    return many;
  }

  bool is_copied(const ManyOutputs& many, int64_t tile) const {
    if (many.sheet) return false;
    const bool is_last = (tile + 1) * code_tile_rows > outputs_ - (bytes_ % code_step_bytes == 0 ? 0 : code_tile_rows);
    return !is_pointwise_ || is_last;
  }

  void multiply_many(ThreadPool& pool, const NhwcSheet* sheet) const {
    const ManyOutputs many = many_outputs(sheet);
    const int64_t parts = pool.size() == 1 ? 1 : parts_per_thread * pool.size();
    const int64_t row_bytes = many.steps * code_step_bytes, most = is_pointwise_ || sheet ? rows_cached : rows_copied;
    const int64_t cached = std::max<int64_t>(1, most / (row_bytes * code_tile_rows));
    const int64_t at_once = std::min({cached, divide_up(many.tiles, parts), many.tiles});
    const int64_t blocks = divide_up(many.tiles, at_once), pairs = divide_up<int64_t>(weights_.panels_, 2);
    const int64_t pairs_at_once = divide_up(pairs, std::min(pairs, divide_up(parts, blocks)));
    const int64_t pair_blocks = divide_up(pairs, pairs_at_once);
    pool.parallel_for(blocks * pair_blocks, divide_up(blocks * pair_blocks, parts), [&](int64_t begin, int64_t end) {
      if (kernels_.enter) kernels_.enter();
      for (int64_t i = begin; i < end; ++i) {
        const int64_t tile = i / pair_blocks * at_once, panel = i % pair_blocks * pairs_at_once * 2;
        multiply_block(many, tile, std::min(tile + at_once, many.tiles), panel,
                       std::min(panel + 2 * pairs_at_once, weights_.panels_));
      }
      if (kernels_.leave) kernels_.leave();
    });
  }

  void multiply_block(const ManyOutputs& many, int64_t tile, int64_t tile_end, int64_t panel, int64_t panel_end) const {
    const int64_t tiles = tile_end - tile, y_pixel = nhwc_pixel(s_.out_channels), column = panel * kernels_.columns;
    const int64_t row_bytes = many.steps * code_step_bytes, tile_bytes = code_tile_rows * row_bytes;
    int64_t copies = 0;
    for (int64_t i = tile; i < tile_end; ++i) copies += is_copied(many, i) ? 1 : 0;
    const int64_t pointers = code_tile_rows * weights_.steps_;
    // Rows that are not used hold anything.
    const Scratch copied(static_cast<size_t>(copies * tile_bytes + 2 * chunk));
    const Scratch memory(static_cast<size_t>(tiles) * (sizeof(CodeRows) + code_tile_rows * sizeof(uint8_t*)) +
                         static_cast<size_t>(pointers) * sizeof(uint8_t*) +
                         static_cast<size_t>(y_pixel + 2 * kernels_.columns));
    const auto rows = memory.as<CodeRows>();
    const auto to = reinterpret_cast<uint8_t**>(rows + tiles);
    const auto pixels = const_cast<const uint8_t**>(to + tiles * code_tile_rows);
    auto* spare = reinterpret_cast<uint8_t*>(pixels + pointers);
    uint8_t* copy = copied.as<uint8_t>();
    for (int64_t i = 0; i < tiles; ++i) {
      const int64_t first = (tile + i) * code_tile_rows;
      rows[i] = {x_ + first * pixel_, pixel_, many.offsets.data(), to + i * code_tile_rows};
      if (many.sheet) {
        rows[i].first = x_ + first * many.sheet->stride();
        rows[i].stride = many.sheet->stride();
      } else if (is_copied(many, tile + i)) {
        copy_rows(first, std::min<int64_t>(code_tile_rows, outputs_ - first), row_bytes, pixels, copy);
        rows[i].first = copy;
        rows[i].stride = row_bytes;
        copy += tile_bytes;
      }
      for (int64_t j = 0; j < code_tile_rows; ++j) {
        const int64_t position = first + j;
        const int64_t output = position >= many.positions ? -1 : many.sheet ? many.sheet->output(position) : position;
        to[i * code_tile_rows + j] = output < 0 ? spare : y_ + output * y_pixel + column;
      }
    }
    NhwcTile codes{};
    requantization_.put(codes, column);
    kernels_.to_codes({.tiles = rows,
                       .tile_count = tiles,
                       .steps = many.steps,
                       .weights = weights_.panel(panel),
                       .panels = panel_end - panel,
                       .panels_at_once = code_panels_at_once(weights_.panel_bytes_),
                       .bias = codes.bias,
                       .scales = codes.scales,
                       .stored = std::min(y_pixel - column, (panel_end - panel) * kernels_.columns),
                       .is_limited = codes.range != CodeRange::any,
                       .is_signed = codes.lowest < 0,
                       .zero = codes.zero});
  }

  // What some outputs read, each side by side.
  void copy_rows(int64_t first, int64_t rows, int64_t row_bytes, const uint8_t** pixels, uint8_t* to) const {
    if (takes_patches_) return copy_patches(first, rows, row_bytes, to);
    Window at = window(first);
    prepare(at, first, rows, pixels, nullptr);
    NhwcTile tile{};
    tile.taps = weights_.steps_;
    tile.bytes = bytes_;
    tile.pixels = pixels;
    kernels_.gather(tile, static_cast<int>(rows), row_bytes, to);
  }

  // Where the pixels are that some outputs read, copied side by side where they are few bytes each. `at` is what the
  // first reads, and becomes what the output after them does; pointwise outputs need none.
  void prepare(Window& at, int64_t first, int64_t rows, const uint8_t** pixels, uint8_t* patches) const {
    if (is_pointwise_) {
      for (int64_t row = 0; row < rows; ++row) pixels[row] = x_ + (first + row) * pixel_;
      return;
    }
    for (int64_t row = 0, count = 1; row < rows; row += count, next(at, count)) {
      if (joins_rows_) {
        find_rows(at, rows, pixels + row);
      } else if (takes_patches_) {
        copy_patch(at, patches + row * bytes_);
        pixels[row] = patches + row * bytes_;
      } else {
        count = std::min(rows - row, s_.output[2] - at.column);
        find_pixels(at, count, rows, pixels + row);
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

  Window window(int64_t output) const {
    const int64_t row = output / s_.output[2];
    Window at{row / s_.output[1] * s_.input[1], row % s_.output[1], output % s_.output[2], 0, 0};
    at.top = at.row * s_.stride[1] - s_.pad[1];
    at.left = at.column * s_.stride[2] - (takes_patches_ ? 0 : s_.pad[2]);
    return at;
  }
  // That of an output further on, which is in the same row or begins the next one.
  void next(Window& at, int64_t count = 1) const {
    at.left += count * s_.stride[2];
    at.column += count;
    if (at.column < s_.output[2]) return;
    at.column = 0;
    at.left = takes_patches_ ? 0 : -s_.pad[2];
    at.top += s_.stride[1];
    if (++at.row < s_.output[1]) return;
    at.row = 0;
    at.top = -s_.pad[1];
    at.image += s_.input[1];
  }

  // Where the pixels are that `count` outputs of a row read; `step` lie between those of two taps.
  void find_pixels(const Window& at, int64_t count, int64_t step, const uint8_t** pixels) const {
    for (int64_t i = 0; i < s_.kernel[1]; ++i) {
      const int64_t h = at.top + i * s_.dilation[1];
      const bool is_inside = h >= 0 && h < s_.input[1];
      const uint8_t* line = is_inside ? x_ + (at.image + h) * width_ * pixel_ : nullptr;
      for (int64_t j = 0; j < s_.kernel[2]; ++j, pixels += step) {
        if (is_inside)
          find_pixels_of_line(line, at.left + j * s_.dilation[2], count, pixels);
        else
          std::fill_n(pixels, count, outside_);
      }
    }
  }

  // Those of one tap, the first of which is at `w`.
  void find_pixels_of_line(const uint8_t* line, int64_t w, int64_t count, const uint8_t** pixels) const {
    const int64_t stride = s_.stride[2], first = w * pixel_;
    const int64_t begin = w < 0 ? std::min(count, divide_up(-w, stride)) : 0;
    const int64_t end =
        w + (count - 1) * stride < width_ ? count : std::max(begin, w < width_ ? divide_up(width_ - w, stride) : 0);
    std::fill_n(pixels, begin, outside_);
    for (int64_t k = begin; k < end; ++k) pixels[k] = line + (first + distances_[k]);
    std::fill_n(pixels + end, count - end, outside_);
  }

  // Where the rows are that an output reads; `step` lie between two.
  void find_rows(const Window& at, int64_t step, const uint8_t** pixels) const {
    for (int64_t i = 0; i < s_.kernel[1]; ++i, pixels += step) {
      const int64_t h = at.top + i * s_.dilation[1];
      const bool is_inside = h >= 0 && h < s_.input[1];
      *pixels = is_inside ? x_ + ((at.image + h) * width_ + at.left) * pixel_ : outside_;
    }
  }

  // What some outputs read, each side by side. Where that is short pieces, outputs of a row of the image read them from
  // the same lines.
  void copy_patches(int64_t first, int64_t rows, int64_t row_bytes, uint8_t* to) const {
    const int64_t bytes = s_.kernel[2] * pixel_, height = s_.kernel[1];
    const bool are_short = s_.dilation[2] == 1 && bytes <= 2 * chunk && height <= most_lines;
    const uint8_t* lines[most_lines];
    Window at = window(first);
    for (int64_t row = 0; row < rows; ++row, next(at), to += row_bytes) {
      if (!are_short) {
        copy_patch(at, to);
        continue;
      }
      if (row == 0 || at.column == 0) find_lines(at, lines);
      for (int64_t i = 0; i < height; ++i) {
        // What is copied too much the next piece overwrites, or weights of zero multiply.
        const uint8_t* from = lines[i] + at.left * pixel_;
        std::memcpy(to + i * bytes, from, chunk);
        std::memcpy(to + i * bytes + chunk, from + chunk, chunk);
      }
    }
  }

  // Where the rows of the window are in the image; `left` is to be added.
  void find_lines(const Window& at, const uint8_t** lines) const {
    for (int64_t i = 0; i < s_.kernel[1]; ++i) {
      const int64_t h = at.top + i * s_.dilation[1];
      lines[i] = h >= 0 && h < s_.input[1] ? x_ + (at.image + h) * width_ * pixel_ : outside_;
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
  // From what an output reads to what others of its row do.
  int64_t distances_[std::max(most_nhwc_rows, code_tile_rows)];
  const uint8_t *x_ = nullptr, *outside_ = nullptr;
  uint8_t* y_ = nullptr;
};

void conv_nhwc(ThreadPool& pool, const ConvShape& shape, const uint8_t* x, uint8_t outside,
               const NhwcConvWeights& weights, const NhwcRequantization& requantization, uint8_t* y) {
  if (shape.batch * shape.output_size() * shape.out_channels == 0) return;
  if (shape.groups > 1)
    convolve_depthwise(pool, shape, x, outside, weights, requantization, y);
  else
    NhwcConv(shape, weights, requantization).run(pool, x, outside, y);
}

}  // namespace tenon::kernels

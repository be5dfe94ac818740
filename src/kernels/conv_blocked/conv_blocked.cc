#include "kernels/conv_blocked/conv_blocked.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "base/channel_block.h"
#include "base/cpu_features.h"
#include "base/rounding.h"
#include "kernels/conv_blocked/driver.h"
#include "kernels/transpose/transpose.h"

namespace tenon::kernels {
namespace {

// The share of the first cache that the weights of some input channels and what a tile reads of them fill, so that
// they stay there for all tiles of a group; other channels are done in turns. What is less than `least_turn` of one
// goes to the others.
constexpr double cache_share = 0.7, least_turn = 0.3;
// Bytes of the image that a group of pixels reads, and that stay in the second cache for all output channels.
constexpr int64_t group_bytes = 256 << 10;
constexpr int64_t most_group_pixels = 1024, least_group_pixels = 56;
// The share of the first cache that outputs fill whose activation is computed at once.
constexpr double activated_share = 0.25;
// With several threads groups are as small as this where each thread has less than so many parts to work on: CPUs need
// not be equally fast, and whoever is done takes parts of others.
constexpr int64_t fewest_group_pixels = 12, parts_per_thread = 8;
// What reading a weight costs beside reading a pixel, which another thread wrote: weights lie in order, and all threads
// read the same.
constexpr double weight_cost = 0.3;
// Bytes of a padded copy that is made at once.
constexpr int64_t band_bytes = 1 << 20;
// Bytes that are worth copying in a thread of their own.
constexpr int64_t least_copied_bytes = 4096;
// Fewer pixels side by side than this would read all weights for too little.
constexpr int64_t least_columns_apart = 4;
// Outputs of two blocks of channels whose maxima are looked for at once.
constexpr int64_t pooled_pixels = 1024;
// Parts of an image that each of several threads has. Where one begins, what windows have in common is computed twice,
// which with more threads takes longer than to look for maxima afterwards.
constexpr int64_t pooled_parts_per_thread = 2;
constexpr int most_threads_that_share_windows = 4;
// With more threads, to copy the pixels of a larger step first takes longer than it saves.
constexpr int most_threads_that_pick = 2;

constexpr float infinity = std::numeric_limits<float>::infinity();

// Null where there are none.
template <class Number>
const BlockedConvKernels<Number>* kernels_of() {
  if constexpr (sizeof(Number) == sizeof(float)) return &conv_blocked_kernels();
#if defined(__aarch64__)
  if constexpr (sizeof(Number) == 2) {
    if (half_channel_block() > 0) return &half_conv_blocked_kernels_neon_fp16;
  }
#endif
  return nullptr;
}

// Whether a convolution reads some single pixels and never the others, which then only fill caches.
bool picks_pixels(const ConvShape& s) {
  return s.kernel_size() == 1 && s.pad[1] == 0 && s.pad[2] == 0 && s.stride[2] > 1 &&
         (s.output[1] - 1) * s.stride[1] < s.input[1] && (s.output[2] - 1) * s.stride[2] < s.input[2];
}

// The pixels that it reads, side by side.
template <class Number>
void pick_pixels(ThreadPool& pool, const ConvShape& s, int64_t lanes, const Number* x, Number* to) {
  const int64_t rows = s.in_channels / lanes * s.output[1], width = s.output[2];
  const int64_t row_bytes = width * lanes * static_cast<int64_t>(sizeof(Number));
  pool.parallel_for(rows, 1 + least_copied_bytes / row_bytes, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t row = i / s.output[1] * s.input[1] + i % s.output[1] * s.stride[1];
      const Number* from = x + row * s.input[2] * lanes;
      Number* out = to + i * width * lanes;
      for (int64_t column = 0; column < width; ++column)
        std::copy_n(from + column * s.stride[2] * lanes, lanes, out + column * lanes);
    }
  });
}

}  // namespace

// Rows that a window and the one below have in common.
int64_t overlap_of(const PoolShape& windows) {
  return std::max<int64_t>(0, (windows.kernel[0] - 1) * windows.dilation[0] + 1 - windows.stride[0]);
}

bool is_depthwise(const ConvShape& s) { return s.groups > 1 && s.in_channels == s.groups; }

// Whether all channels follow each other for a tap, and not all taps for some channels: pixels at which some taps stand
// over padding then leave these out.
bool has_taps_first(const ConvShape& s, bool plain_input) {
  return !plain_input && !is_depthwise(s) && (s.dilation[1] > 1 || s.dilation[2] > 1);
}

// Along one axis: some outputs side by side, and the taps of the kernel that they read.
struct OutputRange {
  int64_t begin, end;
  int64_t tap, tap_end;
};

// One image.
template <class Number>
class DenseBlockedConv {
 public:
  DenseBlockedConv(ThreadPool& pool, const ConvShape& shape, const ConvWeightsInBlocks<Number>& weights,
                   const EpilogueOf<Number>& epilogue)
      : pool_(pool),
        s_(shape),
        k_(*weights.kernels_),
        weights_(weights.buffer_.template as<Number>()),
        epilogue_(epilogue),
        block_(k_.block),
        lanes_(weights.plain_input_ ? 1 : k_.block),
        in_blocks_(s_.in_channels / s_.groups / lanes_),
        out_blocks_(s_.out_channels / block_),
        at_once_(std::min(blocks_at_once, blocks_of_group())),
        taps_first_(has_taps_first(s_, weights.plain_input_)),
        zeros_(static_cast<size_t>(2 * block_)) {
    const int64_t blocks = at_once_, pixels = k_.most_pixels(blocks);
    const int64_t taps = taps_first_ ? 1 : s_.kernel_size(), rows = taps_first_ ? 1 : s_.kernel[1];
    const int64_t bytes = lanes_ * (taps * blocks * block_ + rows * pixels) * size;
    const double cached = cache_share * static_cast<double>(cpu_features().l1d_bytes);
    const double turns = std::ceil(static_cast<double>(in_blocks_ * bytes) / cached - least_turn);
    steps_at_once_ =
        taps * std::max<int64_t>(1, divide_up(in_blocks_, std::max<int64_t>(1, static_cast<int64_t>(turns))));
  }

  void run(const Number* x, const Number* residual, Number* y) const {
    const OutputRange all_rows{0, s_.output[1], 0, s_.kernel[1]}, all_columns{0, s_.output[2], 0, s_.kernel[2]};
    if (!needs_copy(1) && !needs_copy(2))
      return run_area(x, s_.input[1], s_.input[2], all_rows, all_columns, residual, y);
    if (!taps_first_) return run_rows(x, all_rows, all_columns, residual, y);
    const std::vector<OutputRange> rows = ranges(1, all_rows), columns = ranges(2, all_columns);
    const bool is_apart = !columns.empty() && std::ranges::all_of(columns, [](const OutputRange& range) {
      return range.end - range.begin >= least_columns_apart;
    });
    if (rows.empty()) return run_rows(x, all_rows, all_columns, residual, y);
    for (const OutputRange& range : rows) {
      if (!is_apart) run_rows(x, range, all_columns, residual, y);
      for (size_t i = 0; is_apart && i < columns.size(); ++i) {
        const Number* from = x + (start(1, range) * s_.input[2] + start(2, columns[i])) * lanes_;
        run_area(from, s_.input[1], s_.input[2], range, columns[i], residual, y);
      }
    }
  }

  // The maxima of windows of the outputs.
  void run_and_pool(const Number* x, const PoolShape& windows, Number* y) const {
    const int64_t rows = windows.output[0];
    if (!needs_copy(1) && !needs_copy(2)) return pool_rows({x, s_.input[1], s_.input[2], 0, windows, y}, 0, rows);
    const OutputRange all_columns{0, s_.output[2], 0, s_.kernel[2]};
    const int64_t width = extent(2, all_columns), at_once = divide_up(rows_at_once(width), windows.stride[0]);
    for (int64_t row = 0; row < rows; row += at_once) {
      const int64_t end = std::min(row + at_once, rows);
      const OutputRange band = rows_of(windows, row, end);
      const int64_t height = extent(1, band);
      const Scratch scratch(static_cast<size_t>(s_.in_channels * height * width * size));
      pad(x, start(1, band), height, width, scratch.as<Number>());
      pool_rows({scratch.as<Number>(), height, width, band.begin, windows, y}, row, end);
    }
  }

 private:
  static constexpr int64_t size = sizeof(Number), blocks_at_once = BlockedConvKernels<Number>::blocks_at_once;

  // Whether the kernel reaches over the edges of the image.
  bool needs_copy(int d) const {
    const int64_t reach = (s_.output[d] - 1) * s_.stride[d] + (s_.kernel[d] - 1) * s_.dilation[d] + 1;
    return s_.pad[d] > 0 || reach - s_.pad[d] > s_.input[d];
  }

  // Outputs that read the same taps from within the image; none where some read nothing.
  std::vector<OutputRange> ranges(int d, const OutputRange& all) const {
    std::vector<OutputRange> list;
    for (int64_t i = all.begin; i < all.end; ++i) {
      const int64_t first = i * s_.stride[d] - s_.pad[d];
      const int64_t tap = divide_up(std::max<int64_t>(0, -first), s_.dilation[d]);
      const int64_t end = std::min(all.tap_end, divide_up(std::max<int64_t>(0, s_.input[d] - first), s_.dilation[d]));
      if (tap >= end) return {};
      if (list.empty() || list.back().tap != tap || list.back().tap_end != end) list.push_back({i, i, tap, end});
      ++list.back().end;
    }
    return list;
  }

  // Where the first of these outputs reads its first tap.
  int64_t start(int d, const OutputRange& range) const {
    return range.begin * s_.stride[d] - s_.pad[d] + range.tap * s_.dilation[d];
  }
  // From there to the end of what the last one reads.
  int64_t extent(int d, const OutputRange& range) const {
    return (range.end - range.begin - 1) * s_.stride[d] + (range.tap_end - range.tap - 1) * s_.dilation[d] + 1;
  }

  // Rows in bands, from padded copies.
  void run_rows(const Number* x, const OutputRange& rows, const OutputRange& columns, const Number* residual,
                Number* y) const {
    const int64_t width = extent(2, columns), at_once = rows_at_once(width);
    for (int64_t row = rows.begin; row < rows.end; row += at_once) {
      const OutputRange band{row, std::min(row + at_once, rows.end), rows.tap, rows.tap_end};
      const int64_t height = extent(1, band);
      const Scratch scratch(static_cast<size_t>(s_.in_channels * height * width * size));
      pad(x, start(1, band), height, width, scratch.as<Number>());
      run_area(scratch.as<Number>(), height, width, band, columns, residual, y);
    }
  }

  // Rows of outputs that are computed from one padded copy of so many columns.
  int64_t rows_at_once(int64_t width) const {
    const int64_t least = divide_up(most_group_pixels * pool_.size(), s_.output[2]);
    return std::max(least, band_bytes / std::max<int64_t>(1, s_.in_channels * width * s_.stride[1] * size));
  }

  // The rows of outputs that rows of windows cover.
  OutputRange rows_of(const PoolShape& windows, int64_t begin, int64_t end) const {
    const int64_t reach = (windows.kernel[0] - 1) * windows.dilation[0] + 1;
    const int64_t first = std::clamp<int64_t>(begin * windows.stride[0] - windows.pad_begin[0], 0, s_.output[1]);
    const int64_t last = (end - 1) * windows.stride[0] - windows.pad_begin[0] + reach;
    return {first, std::clamp(last, first, s_.output[1]), 0, s_.kernel[1]};
  }

  // Of output channels.
  int64_t blocks_of_group() const { return out_blocks_ / s_.groups; }

  // Rows [first, first + height) of the image, with zeros where there are none.
  void pad(const Number* x, int64_t first, int64_t height, int64_t width, Number* to) const {
    const int64_t left = std::min(s_.pad[2], width), inside = std::min(s_.input[2], width - left);
    const int64_t blocks = in_blocks_ * s_.groups;
    pool_.parallel_for(height * blocks, 1 + least_copied_bytes / (width * lanes_ * size),
                       [&](int64_t begin, int64_t end) {
                         for (int64_t i = begin; i < end; ++i) {
                           const int64_t block = i % blocks, row = first + i / blocks;
                           Number* out = to + (block * height + i / blocks) * width * lanes_;
                           if (row < 0 || row >= s_.input[1]) {
                             std::fill(out, out + width * lanes_, Number{});
                             continue;
                           }
                           std::fill(out, out + left * lanes_, Number{});
                           std::memcpy(out + left * lanes_, x + (block * s_.input[1] + row) * s_.input[2] * lanes_,
                                       static_cast<size_t>(inside * lanes_ * size));
                           std::fill(out + (left + inside) * lanes_, out + width * lanes_, Number{});
                         }
                       });
  }

  // So many groups of pixels or some more, that each thread has enough (group, turn) to work on, and all as many.
  int64_t groups_for_threads(int64_t pixels, int64_t least, int64_t turns) const {
    const int64_t threads = pool_.size();
    if (threads == 1) return least;
    const int64_t most = std::max(least, pixels / fewest_group_pixels);
    const int64_t enough = std::clamp(divide_up(parts_per_thread * threads, turns), least, most);
    const auto idle_share = [&](int64_t groups) {
      const int64_t rounds = divide_up(groups * turns, threads);
      return 1 - static_cast<double>(groups * turns) / static_cast<double>(rounds * threads);
    };
    int64_t best = enough;
    for (int64_t groups = enough + 1; groups <= std::min(most, 2 * enough) && idle_share(best) > 0.05; ++groups)
      if (idle_share(groups) < idle_share(best) - 0.02) best = groups;
    return best;
  }

  // How many turns a thread takes before it goes on to other pixels: all of them, or so few that reading images and
  // weights costs least. The pixels are those that it wrote in the layer before where it takes all turns.
  int64_t turns_in_a_row(int64_t pixels, int64_t turns) const {
    const double threads = pool_.size();
    const auto image = static_cast<double>(pixels * s_.stride[1] * s_.stride[2]);
    const double weights = weight_cost * static_cast<double>(blocks_of_group() * block_ * s_.kernel_size());
    double least = image / threads / 4 + weights;
    int64_t best = turns;
    for (int64_t parts = 2; parts <= std::min<int64_t>(turns, pool_.size()); parts *= 2) {
      const auto n = static_cast<double>(parts);
      if (turns % parts != 0 || n * image / threads + weights / n >= least) continue;
      least = n * image / threads + weights / n;
      best = turns / parts;
    }
    return best;
  }

  // Steps of a tile that read weights which follow each other.
  struct Turn {
    int64_t step, count;
    int64_t weights;  // of how many steps lie before
  };

  // The sums of all steps, whose weights are those from `weights` on, in turns that the first cache holds.
  void add_turns(int64_t step, int64_t count, int64_t weights, std::vector<Turn>& turns) const {
    for (int64_t i = 0; i < count; i += steps_at_once_)
      turns.push_back({step + i, std::min(steps_at_once_, count - i), weights + i});
  }

  // What tiles do for pixels of an area: where they read, beside where the first output begins, and in which turns.
  struct Work {
    std::vector<int64_t> steps;
    std::vector<Turn> turns;
  };
  Work work_of(int64_t height, int64_t width, const OutputRange& rows, const OutputRange& columns) const {
    Work work;
    const auto add = [&](int64_t c, int64_t h, int64_t w) {
      work.steps.push_back(((c * height + h * s_.dilation[1]) * width + w * s_.dilation[2]) * lanes_);
    };
    if (!taps_first_) {
      work.steps.reserve(static_cast<size_t>(in_blocks_ * s_.kernel_size()));
      for (int64_t c = 0; c < in_blocks_; ++c)
        for (int64_t h = 0; h < s_.kernel[1]; ++h)
          for (int64_t w = 0; w < s_.kernel[2]; ++w) add(c, h, w);
      add_turns(0, std::ssize(work.steps), 0, work.turns);
      return work;
    }
    for (int64_t h = 0; h < rows.tap_end - rows.tap; ++h) {
      for (int64_t w = 0; w < columns.tap_end - columns.tap; ++w) {
        const int64_t tap = (rows.tap + h) * s_.kernel[2] + columns.tap + w;
        add_turns(std::ssize(work.steps), in_blocks_, tap * in_blocks_, work.turns);
        for (int64_t c = 0; c < in_blocks_; ++c) add(c, h, w);
      }
    }
    return work;
  }

  // These outputs, from an image of the given size that begins where the first of them reads its first tap.
  void run_area(const Number* x, int64_t height, int64_t width, const OutputRange& rows, const OutputRange& columns,
                const Number* residual, Number* y) const {
    const Work work = work_of(height, width, rows, columns);
    const int64_t line = columns.end - columns.begin, place = rows.begin * s_.output[2] + columns.begin;
    const int64_t pixels = (rows.end - rows.begin) * line;
    const int64_t per_pixel = std::max<int64_t>(1, in_blocks_ * lanes_ * s_.stride[1] * s_.stride[2] * size);
    const int64_t at_once = at_once_, group_step = in_blocks_ * height * width * lanes_;
    const auto activated = static_cast<int64_t>(activated_share * static_cast<double>(cpu_features().l1d_bytes)) /
                           (at_once * block_ * size);
    const int64_t most =
        epilogue_.activation ? std::clamp(activated, least_group_pixels, most_group_pixels) : most_group_pixels;
    const int64_t largest = std::clamp(group_bytes / per_pixel, least_group_pixels, most);
    const int64_t of_group = blocks_of_group(), turns_of_group = divide_up(of_group, at_once);
    const int64_t turns = s_.groups * turns_of_group;
    const int64_t groups = groups_for_threads(pixels, divide_up(pixels, largest), turns);
    const int64_t group = divide_up(pixels, groups);
    const int64_t products = 1 + group * at_once * block_ * std::ssize(work.steps) * lanes_;
    const int64_t in_a_row = turns_in_a_row(pixels, turns);
    pool_.parallel_for(groups * turns, 1 + (128 << 10) / products, [&](int64_t first, int64_t last) {
      int64_t offsets[most_group_pixels];
      const Scratch scratch(static_cast<size_t>(sums_floats(work, group)) * sizeof(float));
      float* sums = sums_floats(work, group) > 0 ? scratch.as<float>() : nullptr;
      int64_t filled = -1;
      for (int64_t i = first; i < last; ++i) {
        const int64_t from = i / in_a_row % groups * group, count = std::min(group, pixels - from);
        if (count <= 0) continue;
        if (filled != from) {
          int64_t row = from / line, column = from % line;
          for (int64_t p = 0; p < count; ++p) {
            offsets[p] = (row * s_.stride[1] * width + column * s_.stride[2]) * lanes_;
            if (++column == line) column = 0, ++row;
          }
          filled = from;
        }
        const int64_t turn = i / (in_a_row * groups) * in_a_row + i % in_a_row;
        const int64_t first_block = turn % turns_of_group * at_once,
                      out = turn / turns_of_group * of_group + first_block;
        const int64_t blocks = std::min(at_once, of_group - first_block);
        const int64_t at = (out * s_.output[1] * s_.output[2] + place) * block_;
        run_group(x + turn / turns_of_group * group_step, {offsets, from, count, line}, work, out, blocks,
                  residual ? residual + at : nullptr, sums, y + at, s_.output[1] * s_.output[2] * block_);
      }
    });
  }

  // Floats in which sums of half precision are added up: those of a group that is done in turns, or of a tile.
  int64_t sums_floats(const Work& work, int64_t group) const {
    if (k_.most_products == 0) return 0;
    if (work.turns.size() > 1) return group * blocks_at_once * block_;
    return std::ssize(work.steps) * lanes_ <= k_.most_products ? 0 : k_.pixels * blocks_at_once * block_;
  }

  // Some pixels of an area, counted line by line.
  struct Pixels {
    const int64_t* offsets;
    int64_t from, count, line;
  };

  // Calls body(i, n, place) for pixels [i, i + n) whose outputs lie side by side, from `place` of the area on.
  template <class Body>
  void each_piece(const Pixels& pixels, Body body) const {
    if (pixels.line == s_.output[2]) return body(0, pixels.count, pixels.from);
    for (int64_t i = 0, n; i < pixels.count; i += n) {
      const int64_t row = (pixels.from + i) / pixels.line, column = (pixels.from + i) % pixels.line;
      n = std::min(pixels.count - i, pixels.line - column);
      body(i, n, row * s_.output[2] + column);
    }
  }

  // One or two blocks of output channels of some pixels, the second one `y_step` after the first.
  void run_group(const Number* x, const Pixels& pixels, const Work& work, int64_t out, int64_t blocks,
                 const Number* residual, float* sums, Number* y, int64_t y_step) const {
    const auto* one = lanes_ == 1 ? k_.plain : k_.blocked;
    const auto* two = lanes_ == 1 ? k_.two_plain : k_.two_blocked;
    const auto* kernels = blocks == 1 ? one : two;
    const int64_t weights_of_step = lanes_ * block_;
    const int64_t weights_of_block = in_blocks_ * s_.kernel_size() * weights_of_step;
    const Number* bias = epilogue_.bias ? epilogue_.bias + out * block_ : zeros_.data();
    for (size_t i = 0; i == 0 || i < work.turns.size(); ++i) {
      const Turn turn = work.turns.empty() ? Turn{} : work.turns[i];
      const bool last = i + 1 >= work.turns.size();
      TileOf<Number> tile;
      tile.x = x;
      tile.steps = work.steps.data() + turn.step;
      tile.step_count = turn.count;
      tile.weights = weights_ + out * weights_of_block + turn.weights * weights_of_step;
      tile.weight_step = weights_of_block;
      tile.start = i == 0 ? bias : nullptr;
      tile.y_step = y_step;
      tile.clamp = last && (epilogue_.lo > -infinity || epilogue_.hi < infinity);
      tile.lo = epilogue_.lo;
      tile.hi = epilogue_.hi;
      tile.sums_step = work.turns.size() > 1 ? blocks * block_ : 0;
      tile.keeps_sums = !last;
      const int64_t read = tile.step_count * weights_of_step;
      each_piece(pixels, [&](int64_t first, int64_t count, int64_t place) {
        tile.pixels = pixels.offsets + first;
        tile.y = y + place * block_;
        tile.residual = last && residual ? residual + place * block_ : nullptr;
        tile.sums = sums ? sums + first * tile.sums_step : nullptr;
        const int64_t tiles = divide_up(count, k_.most_pixels(blocks));
        const WeightsAhead ahead(tile.weights + read + (last ? (blocks - 1) * tile.weight_step : 0), read, weights_,
                                 weights_ + out_blocks_ * tile.weight_step, tiles, tile.step_count);
        run_tiles(kernels, tile, count, tiles, block_, ahead);
      });
    }
    if (!epilogue_.activation) return;
    each_piece(pixels, [&](int64_t, int64_t count, int64_t place) {
      for (int64_t b = 0; b < blocks; ++b) {
        Number* outputs = y + b * y_step + place * block_;
        epilogue_.activation(outputs, outputs, count * block_);
      }
    });
  }

  // An image, or a padded part of it, and what becomes the maxima of its outputs.
  struct PooledImage {
    const Number* x;
    int64_t height, width;
    int64_t first_row;  // of outputs: where it begins
    const PoolShape& windows;
    Number* y;

    // Rows of windows that are worked on at once.
    int64_t rows_at_once() const {
      return std::max<int64_t>(1, (pooled_pixels / windows.input[1] - overlap_of(windows)) / windows.stride[0]);
    }
    int64_t rows_of_outputs() const {
      const int64_t reach = (windows.kernel[0] - 1) * windows.dilation[0] + 1;
      return std::min(windows.input[0], (rows_at_once() - 1) * windows.stride[0] + reach);
    }
    int64_t pixels() const { return rows_of_outputs() * windows.input[1]; }
  };

  // Rows [begin, end) of windows, in parts for the threads.
  void pool_rows(const PooledImage& image, int64_t begin, int64_t end) const {
    const Work work =
        work_of(image.height, image.width, {0, s_.output[1], 0, s_.kernel[1]}, {0, s_.output[2], 0, s_.kernel[2]});
    const int64_t turns = divide_up(out_blocks_, at_once_), rows = end - begin;
    const int64_t wanted = pool_.size() == 1 ? 1 : divide_up(pooled_parts_per_thread * pool_.size(), turns);
    const int64_t part = divide_up(rows, std::min(rows, wanted)), parts = divide_up(rows, part);
    pool_.parallel_for(turns * parts, 1, [&](int64_t first, int64_t last) {
      const Scratch scratch(static_cast<size_t>(at_once_ * image.pixels() * block_ * size));
      for (int64_t i = first; i < last; ++i) {
        const int64_t top = begin + i % parts * part;
        pool_part(image, work, i / parts * at_once_, top, std::min(top + part, end), scratch.as<Number>());
      }
    });
  }

  // The blocks from `out` on that are worked on together, some rows at a time. Those of the outputs that the windows
  // above covered too are kept.
  void pool_part(const PooledImage& image, const Work& work, int64_t out, int64_t top, int64_t bottom,
                 Number* outputs) const {
    const PoolShape& windows = image.windows;
    const int64_t blocks = std::min(at_once_, out_blocks_ - out), line = s_.output[2];
    const int64_t plane = image.pixels() * block_;
    std::vector<int64_t> offsets(static_cast<size_t>(image.pixels()));
    OutputRange held{};
    for (int64_t row = top, next; row < bottom; row = next) {
      next = std::min(row + image.rows_at_once(), bottom);
      const OutputRange band = rows_of(windows, row, next);
      const int64_t kept = row > top ? std::max<int64_t>(0, held.end - band.begin) : 0;
      for (int64_t b = 0; b < blocks && kept > 0 && band.begin > held.begin; ++b) {
        Number* own = outputs + b * plane;
        std::copy_n(own + (band.begin - held.begin) * line * block_, kept * line * block_, own);
      }
      held = band;
      int64_t count = 0;
      for (int64_t r = band.begin + kept - image.first_row; r < band.end - image.first_row; ++r)
        for (int64_t column = 0; column < line; ++column)
          offsets[static_cast<size_t>(count++)] = (r * s_.stride[1] * image.width + column * s_.stride[2]) * lanes_;
      if (count > 0)
        run_group(image.x, {offsets.data(), 0, count, line}, work, out, blocks, nullptr, nullptr,
                  outputs + kept * line * block_, plane);
      PoolShape own = windows;
      own.planes = 1;
      own.input[0] = band.end - band.begin;
      own.output[0] = next - row;
      own.pad_begin[0] = band.begin - (row * windows.stride[0] - windows.pad_begin[0]);
      for (int64_t b = 0; b < blocks; ++b)
        max_pool(pool_, own, outputs + b * plane,
                 image.y + ((out + b) * windows.output[0] + row) * windows.output[1] * block_);
    }
  }

  ThreadPool& pool_;
  const ConvShape& s_;
  const BlockedConvKernels<Number>& k_;
  const Number* weights_;
  const EpilogueOf<Number>& epilogue_;
  int64_t block_, lanes_;
  int64_t in_blocks_;  // of a group
  int64_t out_blocks_, at_once_, steps_at_once_;
  bool taps_first_;
  std::vector<Number> zeros_;
};

template <class Number>
ConvWeightsInBlocks<Number>::ConvWeightsInBlocks(ThreadPool& pool, const ConvShape& shape, bool plain_input,
                                                 const Number* weights, PackedStorage& storage)
    : kernels_(kernels_of<Number>()), plain_input_(plain_input) {
  const int64_t block = kernels_->block, taps = shape.kernel_size();
  const int64_t in = shape.in_channels / shape.groups, lanes = plain_input || is_depthwise(shape) ? 1 : block;
  buffer_ = storage.get(static_cast<size_t>(shape.out_channels * in * taps) * sizeof(Number), [&](void* memory) {
    const int64_t dims[] = {shape.out_channels / block, block, in / lanes, lanes, taps};
    const bool taps_first = has_taps_first(shape, plain_input);
    const int64_t order[] = {0, taps_first ? 4 : 2, taps_first ? 2 : 4, 3, 1};
    transpose(pool, weights, memory, dims, order, sizeof(Number));
  });
}

template class ConvWeightsInBlocks<float>;
template class ConvWeightsInBlocks<uint16_t>;

namespace {

template <class Number>
EpilogueOf<Number> without_nan_bounds(EpilogueOf<Number> epilogue) {
  if (std::isnan(epilogue.lo)) epilogue.lo = -infinity;
  if (std::isnan(epilogue.hi)) epilogue.hi = infinity;
  return epilogue;
}

template <class Number>
void run_conv(ThreadPool& pool, const ConvShape& shape, const Number* x, const ConvWeightsInBlocks<Number>& weights,
              Number* y, const EpilogueOf<Number>& given) {
  if (shape.batch <= 0 || shape.output_size() <= 0 || shape.out_channels <= 0) return;
  const EpilogueOf<Number> epilogue = without_nan_bounds<Number>(given);
  if (is_depthwise(shape)) return conv_blocked_depthwise(pool, shape, x, weights, y, epilogue);
  const bool picks = picks_pixels(shape) && pool.size() <= most_threads_that_pick;
  ConvShape picked = shape;
  for (int d = 0; picks && d < 3; ++d) picked.input[d] = shape.output[d], picked.stride[d] = 1;
  const Scratch scratch(picks ? static_cast<size_t>(shape.in_channels * shape.output_size()) * sizeof(Number) : 0);
  const DenseBlockedConv<Number> conv(pool, picked, weights, epilogue);
  for (int64_t n = 0; n < shape.batch; ++n) {
    const int64_t at = n * shape.out_channels * shape.output_size();
    const Number* image = x + n * shape.in_channels * shape.input_size();
    if (picks) pick_pixels(pool, shape, weights.plain_input() ? 1 : weights.block(), image, scratch.as<Number>());
    conv.run(picks ? scratch.as<Number>() : image, epilogue.residual ? epilogue.residual + at : nullptr, y + at);
  }
}

}  // namespace

int64_t conv_block() { return conv_blocked_kernels().block; }
int64_t half_conv_block() {
  const HalfConvBlockedKernels* kernels = kernels_of<uint16_t>();
  return kernels ? kernels->block : 0;
}
Isa conv_blocked_isa() { return conv_blocked_kernels().isa; }

void conv_blocked(ThreadPool& pool, const ConvShape& shape, const float* x, const BlockedConvWeights& weights, float* y,
                  const ConvEpilogue& epilogue) {
  run_conv(pool, shape, x, weights, y, epilogue);
}

bool pays_to_pool(const ThreadPool& pool, const ConvShape& s, const PoolShape& windows) {
  return s.output_size() > 0 && (pool.size() <= most_threads_that_share_windows || overlap_of(windows) == 0);
}

void conv_blocked_max_pool(ThreadPool& pool, const ConvShape& shape, const PoolShape& windows, const float* x,
                           const BlockedConvWeights& weights, float* y, const ConvEpilogue& epilogue) {
  if (shape.batch <= 0 || shape.output_size() <= 0 || shape.out_channels <= 0) return;
  const ConvEpilogue bounded = without_nan_bounds<float>(epilogue);
  const DenseBlockedConv<float> conv(pool, shape, weights, bounded);
  for (int64_t n = 0; n < shape.batch; ++n)
    conv.run_and_pool(x + n * shape.in_channels * shape.input_size(), windows,
                      y + n * shape.out_channels / windows.input[2] * windows.output_size());
}

void conv_blocked(ThreadPool& pool, const ConvShape& shape, const uint16_t* x, const HalfBlockedConvWeights& weights,
                  uint16_t* y, const HalfConvEpilogue& epilogue) {
  run_conv(pool, shape, x, weights, y, epilogue);
}

}  // namespace tenon::kernels

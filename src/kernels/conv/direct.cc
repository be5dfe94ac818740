#include "kernels/conv/direct.h"

#include <algorithm>
#include <cmath>

#include "base/rounding.h"
#include "kernels/scratch.h"
#include "kernels/transpose/transpose.h"

namespace tenon::kernels {
namespace {

// The share of the first cache that the weights of some steps fill; they stay there for all tiles of an area.
constexpr double cache_share = 0.7;
// The share of the second cache that the image's pixels of an area fill; they stay there for all output channels.
constexpr double area_share = 0.25;
// Sums of an area stay in the first cache, unless the weights have to be fetched anew for every area.
constexpr int64_t most_area_pixels = 256, least_area_pixels = 48, most_pixels_of_many_weights = 1024;
constexpr double many_weights = 0.5;  // of the second cache
// Threads have at least so many parts to work on each, unless areas would be too small.
constexpr int64_t parts_per_thread = 4;
constexpr int64_t blocks_at_once = ConvBlockedKernels::blocks_at_once;
// Tiles that are worked on before more of the output is fetched.
constexpr int64_t tiles_in_a_row = 2;
constexpr int64_t flops_per_task = 200'000;
constexpr float infinity = std::numeric_limits<float>::infinity();

// Fetches the lines of some rows of some channels, a few at a time.
class LinesAhead {
 public:
  LinesAhead(const float* first, int64_t columns, int64_t row_step, int64_t rows, int64_t channel_step,
             int64_t channels, int64_t parts)
      : channel_(first),
        row_(first),
        at_(first),
        columns_(columns),
        row_step_(row_step),
        rows_(rows),
        channel_step_(channel_step),
        channels_(channels),
        each_(divide_up(channels * rows * divide_up(columns, line), parts)) {}

  void fetch(int64_t parts) {
    for (int64_t i = 0; i < parts * each_ && channels_ > 0; ++i) {
      __builtin_prefetch(at_, 0, 2);
      at_ += line;
      if (at_ < row_ + columns_) continue;
      row_ += row_step_;
      if (++rows_done_ == rows_) {
        rows_done_ = 0;
        row_ = channel_ += channel_step_;
        --channels_;
      }
      at_ = row_;
    }
  }

 private:
  static constexpr int64_t line = 16;
  const float *channel_, *row_, *at_;
  int64_t columns_, row_step_, rows_, channel_step_, channels_, each_;
  int64_t rows_done_ = 0;
};

class Direct {
 public:
  Direct(const ConvBlockedKernels& kernels, const DirectConv& conv, float* y, int64_t threads)
      : k_(kernels), c_(conv), y_(y), block_(kernels.block), bias_(static_cast<size_t>(blocks() * block_)) {
    if (c_.bias) std::copy_n(c_.bias, c_.channels, bias_.begin());
    if (std::isnan(c_.lo)) c_.lo = -infinity;
    if (std::isnan(c_.hi)) c_.hi = infinity;
    for (const DirectPart& part : c_.parts) steps_ += static_cast<int64_t>(part.offsets.size());
    // An area is some rows, or a piece of one.
    const double cache_floats = static_cast<double>(cpu_features().l2_bytes) / 4;
    const bool has_many_weights = static_cast<double>(c_.all_weights.size()) > many_weights * cache_floats;
    int64_t pixels = std::min(
        (has_many_weights ? most_pixels_of_many_weights : most_area_pixels) / static_cast<int64_t>(c_.parts.size()),
        static_cast<int64_t>(area_share * cache_floats) / std::max<int64_t>(1, c_.image_channels));
    if (threads > 1) {
      const int64_t all = c_.size[0] * c_.size[1] * c_.size[2];
      pixels = std::min(pixels, all * turns() / (parts_per_thread * threads));
    }
    pixels = std::max(pixels, least_area_pixels);
    rows_ = std::clamp<int64_t>(pixels / c_.size[2], 1, c_.size[1]);
    pieces_ = divide_up(c_.size[2], pixels);
    columns_ = divide_up(c_.size[2], pieces_);
    pieces_ = divide_up(c_.size[2], columns_);
    areas_of_plane_ = divide_up(c_.size[1], rows_) * pieces_;
  }

  int64_t turns() const { return divide_up(blocks(), blocks_at_once); }
  int64_t areas() const { return c_.size[0] * areas_of_plane_; }
  int64_t flops_of_area() const { return 2 * rows_ * columns_ * steps_ * blocks_at_once * block_; }

  // Some blocks of output channels in [begin, end) of (area, turn).
  void run(int64_t begin, int64_t end) const {
    const auto most_pixels = static_cast<size_t>(rows_ * columns_);
    std::vector<int64_t> offsets(most_pixels);
    const int64_t phase_step = rows_ * columns_ * block_;
    const auto phases = static_cast<int64_t>(c_.parts.size());
    const int64_t read_beyond = 16 * block_;
    const Scratch scratch(static_cast<size_t>(blocks_at_once * phases * phase_step + read_beyond) * sizeof(float));
    for (int64_t i = begin; i < end; ++i) {
      const Area area = area_of(i / turns());
      int64_t* offset = offsets.data();
      for (int64_t row = 0; row < area.rows; ++row)
        for (int64_t column = 0; column < area.columns; ++column)
          *offset++ = (area.row + row) * c_.image_step[1] + (area.column + column) * c_.image_step[2];
      const int64_t out = i % turns() * blocks_at_once, count = std::min(blocks_at_once, blocks() - out);
      const Tiles tiles(area, k_.most_pixels(count));
      LinesAhead ahead(y_ + y_offset(area, out), std::min(area.columns * phases, c_.columns - area.column * phases),
                       c_.y_step[1], area.rows, c_.y_channel, std::min(count * block_, c_.channels - out * block_),
                       phases * tiles.lines * tiles.each);
      for (int64_t phase = 0; phase < phases; ++phase)
        multiply(c_.parts[static_cast<size_t>(phase)], area, tiles, offsets.data(), out, count,
                 scratch.as<float>() + phase * phase_step, phases * phase_step, ahead);
      store(area, out, count, scratch.as<float>(), phase_step);
    }
  }

 private:
  struct Area {
    int64_t plane, row, rows, column, columns;
  };

  // Tiles are pieces of rows, whose pixels lie evenly, unless these are very short.
  struct Tiles {
    Tiles(const Area& area, int64_t width) {
      const bool by_row = 2 * area.columns >= width;
      lines = by_row ? area.rows : 1;
      length = by_row ? area.columns : area.rows * area.columns;
      each = divide_up(length, width);
    }
    int64_t lines, length, each;
  };

  int64_t y_offset(const Area& area, int64_t out) const {
    return out * block_ * c_.y_channel + area.plane * c_.y_step[0] + area.row * c_.y_step[1] +
           area.column * static_cast<int64_t>(c_.parts.size());
  }

  int64_t blocks() const { return divide_up(c_.channels, int64_t{k_.block}); }

  Area area_of(int64_t index) const {
    const int64_t in_plane = index % areas_of_plane_, row = in_plane / pieces_ * rows_,
                  column = in_plane % pieces_ * columns_;
    return {index / areas_of_plane_, row, std::min(rows_, c_.size[1] - row), column,
            std::min(columns_, c_.size[2] - column)};
  }

  // The sums of some blocks go to `sums`, those of a block after the other `block_step` apart.
  void multiply(const DirectPart& part, const Area& area, const Tiles& tiles, const int64_t* offsets, int64_t out,
                int64_t count, float* sums, int64_t block_step, LinesAhead& lines_ahead) const {
    const auto k = static_cast<int64_t>(part.offsets.size());
    const auto cached = static_cast<int64_t>(cache_share * static_cast<double>(cpu_features().l1d_bytes) / 4);
    const int64_t turns = std::max<int64_t>(1, divide_up(k * count * block_, cached));
    const int64_t most = std::max<int64_t>(1, divide_up(k, turns));
    const float *all = c_.all_weights.data(), *all_end = all + c_.all_weights.size();
    BlockedTile tile;
    tile.x = c_.image + area.plane * c_.image_step[0];
    tile.weight_step = k * block_;
    tile.y_step = block_step;
    tile.residual = nullptr;
    tile.clamp = false;
    for (int64_t step = 0; step == 0 || step < k; step += most) {
      const bool is_last = step + most >= k;
      tile.step_count = std::min(most, k - step);
      tile.steps = part.offsets.data() + step;
      tile.weights = part.weights + (out * k + step) * block_;
      tile.start = step == 0 ? bias_.data() + out * block_ : nullptr;
      const int64_t floats = tile.step_count * block_;
      const WeightsAhead ahead(tile.weights + floats + (is_last ? (count - 1) * tile.weight_step : 0), floats, all,
                               all_end, tiles.lines * tiles.each, tile.step_count);
      tile.pixels = offsets;
      tile.y = sums;
      // Some tiles of the same size are worked on in one call.
      const int64_t longer = tiles.length % tiles.each, all_tiles = tiles.lines * tiles.each;
      for (int64_t i = 0; i < all_tiles; i += tile.tiles) {
        const int64_t pixels = tiles.length / tiles.each + (i % tiles.each < longer ? 1 : 0);
        tile.tiles = longer == 0 ? std::min(tiles_in_a_row, all_tiles - i) : 1;
        if (is_last) lines_ahead.fetch(tile.tiles);
        ahead.fetch_in(tile, i);
        kernels(count)[pixels](tile);
        tile.pixels += tile.tiles * pixels;
        tile.y += tile.tiles * pixels * block_;
      }
    }
  }

  const ConvBlockedKernels::Function* kernels(int64_t blocks) const { return blocks == 1 ? k_.plain : k_.two_plain; }

  void store(const Area& area, int64_t out, int64_t count, const float* sums, int64_t phase_step) const {
    const auto phases = static_cast<int64_t>(c_.parts.size());
    BlocksToPlanes blocks{};
    blocks.block_step = phases * phase_step;
    blocks.phases = phases;
    blocks.phase_step = phase_step;
    blocks.channels = std::min(count * block_, c_.channels - out * block_);
    blocks.y_step = c_.y_channel;
    blocks.clamp = c_.lo > -infinity || c_.hi < infinity;
    blocks.lo = c_.lo;
    blocks.hi = c_.hi;
    // Rows without a gap are one.
    const bool joins = area.columns * phases == c_.columns && c_.y_step[1] == c_.columns;
    const int64_t rows = joins ? 1 : area.rows, columns = area.columns * (joins ? area.rows : 1);
    for (int64_t row = 0; row < rows; ++row) {
      const int64_t column = area.column * phases, at = y_offset(area, out) + row * c_.y_step[1];
      blocks.sums = sums + row * columns * block_;
      blocks.pixels = joins ? columns * phases : std::min(columns * phases, c_.columns - column);
      blocks.y = y_ + at;
      blocks.residual = c_.residual ? c_.residual + at : nullptr;
      k_.to_planes(blocks);
      for (int64_t c = 0; c_.activation && c < blocks.channels; ++c)
        c_.activation(blocks.y + c * c_.y_channel, blocks.y + c * c_.y_channel, blocks.pixels);
    }
  }

  const ConvBlockedKernels& k_;
  DirectConv c_;
  float* y_;
  int64_t block_;
  std::vector<float> bias_;
  int64_t steps_ = 0;
  int64_t rows_, pieces_, columns_, areas_of_plane_;
};

}  // namespace

int64_t direct_weights_floats(const ConvBlockedKernels& kernels, int64_t channels, int64_t k) {
  return round_up(channels, kernels.block) * k;
}

void pack_direct_weights(ThreadPool& pool, const ConvBlockedKernels& kernels, int64_t channels, int64_t k,
                         const float* weights, float* to) {
  const int64_t block = kernels.block, whole = channels / block, rest = channels % block;
  constexpr int64_t order[] = {0, 2, 1};
  const int64_t dims[] = {whole, block, k};
  transpose(pool, weights, to, dims, order, sizeof(float));
  if (rest == 0) return;
  weights += whole * block * k;
  to += whole * block * k;
  for (int64_t i = 0; i < k; ++i)
    for (int64_t c = 0; c < block; ++c) *to++ = c < rest ? weights[c * k + i] : 0.0f;
}

void conv_direct(ThreadPool* pool, const ConvBlockedKernels& kernels, const DirectConv& conv, float* y) {
  const Direct direct(kernels, conv, y, pool ? pool->size() : 1);
  const auto run = [&](int64_t begin, int64_t end) { direct.run(begin, end); };
  const int64_t total = direct.areas() * direct.turns();
  if (!pool) return run(0, total);
  pool->parallel_for(total, 1 + flops_per_task / (direct.flops_of_area() + 1), run);
}

}  // namespace tenon::kernels

#include "kernels/winograd/winograd.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "base/rounding.h"
#include "kernels/simd/extreme.h"

namespace tenon::kernels {
namespace {

// Floats of points, of input and output together, that are worked on at once: about what the second cache holds.
constexpr int64_t floats_at_once = 160 << 10;
constexpr int64_t least_tiles_at_once = 48;
// Where each thread has its own tiles, so many at least; and the floats that a thread could read while threads wait for
// each other.
constexpr int64_t fewest_tiles_at_once = 8, floats_of_waiting = 64 << 10;
// Where they work on the same tiles, the parts of these that each has in the transforms.
constexpr int64_t strips_per_thread = 2;
// Points that are worth a thread of their own there.
constexpr int64_t least_points = 144;
constexpr int most_points = 36;

// The first and the last point of a line of three weights are its ends. The others come in pairs, at places that differ
// in their sign: the ends and the middle weight, each with a factor, are added for one and subtracted for the other.
struct PointPair {
  double first, middle, last;
};
constexpr double sqrt_half = 0.70710678118654752, sqrt_two = 1.4142135623730951;
template <int tile>
constexpr PointPair point_pairs[1] = {{0.5, 0.5, 0.5}};
template <>
constexpr PointPair point_pairs<4>[2] = {{-2. / 3, -2. / 3 * sqrt_half, -1. / 3}, {1. / 6, sqrt_two / 6, 1. / 3}};

// Lines of `lanes` channels, whose weights lie `step` apart, become points that lie `point_step` apart.
template <int tile, int lanes, typename From, typename To>
void make_line_points(const From* line, int64_t step, To* points, int64_t point_step) {
  for (int lane = 0; lane < lanes; ++lane) {
    const double first = line[lane], middle = line[step + lane], last = line[2 * step + lane];
    To* to = points + lane;
    *to = static_cast<To>(first);
    for (const PointPair& pair : point_pairs<tile>) {
      const double ends = pair.first * first + pair.last * last, between = pair.middle * middle;
      *(to += point_step) = static_cast<To>(ends + between);
      *(to += point_step) = static_cast<To>(ends - between);
    }
    *(to += point_step) = static_cast<To>(last);
  }
}

// The weights of one block of output channels, from [out lane][in channel][9], become the points of `count` input
// channels: [point][in channel][out lane].
template <int block, int tile>
void make_points(const float* weights, int64_t in, int64_t count, float* points) {
  constexpr int n = tile + 2;
  float taps[9 * block];
  double rows[n * 3 * block];
  for (int64_t c = 0; c < count; ++c) {
    for (int lane = 0; lane < block; ++lane)
      for (int tap = 0; tap < 9; ++tap) taps[tap * block + lane] = weights[(lane * in + c) * 9 + tap];
    make_line_points<tile, 3 * block>(taps, 3 * block, rows, 3 * block);
    for (int p = 0; p < n; ++p)
      make_line_points<tile, block>(rows + p * 3 * block, block, points + (p * n * count + c) * block, count * block);
  }
}

// To [point][out block][in channel][out lane]. The places of a channel's points are far apart, often by a power of two,
// which caches do not like: so they are made for some channels at a time and then copied.
template <int block, int tile>
void make_all_points(ThreadPool& pool, const ConvShape& shape, const float* weights, float* points) {
  constexpr int64_t at_once = 16, count_of_points = (tile + 2) * (tile + 2);
  const int64_t in = shape.in_channels / shape.groups, out_blocks = shape.out_channels / block,
                parts = divide_up(in, at_once);
  pool.parallel_for(out_blocks * parts, 1, [&](int64_t begin, int64_t end) {
    float own[count_of_points * at_once * block];
    for (int64_t i = begin; i < end; ++i) {
      const int64_t out = i / parts, first = i % parts * at_once, count = std::min(at_once, in - first);
      make_points<block, tile>(weights + (out * block * in + first) * 9, in, count, own);
      for (int64_t point = 0; point < count_of_points; ++point)
        std::copy_n(own + point * count * block, count * block,
                    points + ((point * out_blocks + out) * in + first) * block);
    }
  });
}

void make_all_points(ThreadPool& pool, const ConvShape& shape, int tile, int64_t block, const float* weights,
                     float* points) {
  const auto make = block == 16 ? (tile == 2 ? make_all_points<16, 2> : make_all_points<16, 4>)
                                : (tile == 2 ? make_all_points<8, 2> : make_all_points<8, 4>);
  make(pool, shape, weights, points);
}

// Where the tiles of a line of pixels begin. A tile is of pixels that lie `dilation` apart, which read others that do:
// each remainder that places leave is a line of its own.
std::vector<int64_t> starts_of_tiles(int64_t pixels, int64_t dilation, int tile) {
  std::vector<int64_t> starts;
  for (int64_t first = 0; first < std::min(dilation, pixels); ++first)
    for (int64_t start = first; start < pixels; start += tile * dilation) starts.push_back(start);
  return starts;
}

}  // namespace

WinogradWeights::WinogradWeights(ThreadPool& pool, const ConvShape& shape, int tile, const float* weights,
                                 PackedStorage& storage)
    : transforms_(&winograd_kernels()), kernels_(&conv_blocked_kernels()), tile_(tile) {
  const int64_t points = (tile + 2) * (tile + 2);
  buffer_ = storage.get(
      static_cast<size_t>(points * shape.out_channels * shape.in_channels / shape.groups) * sizeof(float),
      [&](void* memory) { make_all_points(pool, shape, tile, kernels_->block, weights, static_cast<float*>(memory)); });
}

class WinogradConv {
 public:
  // `windows` of a pool, or null.
  WinogradConv(ThreadPool& pool, const ConvShape& shape, const WinogradWeights& weights, const float* x, float* y,
               const ConvEpilogue& epilogue, const PoolShape* windows = nullptr)
      : pool_(pool),
        windows_(windows),
        s_(shape),
        transforms_(*weights.transforms_),
        k_(*weights.kernels_),
        weights_(weights.buffer_.as<float>()),
        x_(x),
        y_(y),
        epilogue_(epilogue),
        tile_(weights.tile_),
        n_(tile_ + 2),
        block_(k_.block),
        in_blocks_(s_.in_channels / block_),
        out_blocks_(s_.out_channels / block_),
        summed_(s_.in_channels / s_.groups),
        rows_(starts_of_tiles(s_.output[1], s_.dilation[1], tile_)),
        columns_(starts_of_tiles(s_.output[2], s_.dilation[2], tile_)),
        zeros_(static_cast<size_t>(2 * block_)) {}

  void run() {
    const int64_t tiles = s_.batch * std::ssize(rows_) * std::ssize(columns_), points = n_ * n_, threads = pool_.size();
    const int64_t most = std::max(least_tiles_at_once, floats_at_once / (points * (s_.in_channels + s_.out_channels)));
    own_ = has_own_parts(tiles);
    const int64_t parts =
        own_ ? divide_up(divide_up(tiles, most), threads) * threads : divide_up(tiles, most * threads);
    at_once_ = divide_up(tiles, parts);
    // A line more, so that the points of a tile do not all fall into the same lines of the first cache.
    in_step_ = s_.in_channels * at_once_ + 16;
    out_step_ = s_.out_channels * at_once_ + 16;
    pool_.parallel_for(parts, own_ ? 1 : parts, [&](int64_t begin, int64_t end) {
      const Scratch scratch(static_cast<size_t>(points * (in_step_ + out_step_)) * sizeof(float));
      float *in = scratch.as<float>(), *out = in + points * in_step_;
      for (int64_t part = begin; part < end; ++part) {
        const int64_t first = part * at_once_, count = std::min(at_once_, tiles - first);
        if (count > 0) run_part(first, count, in, out);
      }
    });
  }

 private:
  // Whether each thread works on tiles of its own and reads all weights, or all threads work on the same tiles, for
  // some of the weights each, and wait for each other between the steps: what moves fewer bytes for each thread.
  bool has_own_parts(int64_t tiles) const {
    const int64_t threads = pool_.size(), points = n_ * n_;
    if (threads == 1) return true;
    if (tiles < fewest_tiles_at_once * threads) return false;
    const int64_t weights = points * summed_ * s_.out_channels;
    const int64_t exchanged = 2 * points * tiles * (s_.in_channels + s_.out_channels) / threads;
    return weights <= exchanged + floats_of_waiting;
  }

  // Tiles [first, first + count) in steps that threads share, unless this thread is already one of several.
  void run_part(int64_t first, int64_t count, float* in, float* out) {
    const int64_t grain = 1 + least_points / (n_ * n_);
    share_tiles(in_blocks_, count, grain, [&](int64_t c, int64_t begin, int64_t end) {
      transform_input(first, begin, end, c, in + c * count * block_);
    });
    std::vector<int64_t> steps, pixels;
    for (int64_t c = 0; c < in_blocks_ / s_.groups; ++c) steps.push_back(c * count * block_);
    for (int64_t t = 0; t < count; ++t) pixels.push_back(t * block_);
    // Weights are read once where all tiles fit, twice where it takes two turns.
    const bool fits_one_block = count <= k_.pixels && count > k_.two_pixels;
    const int64_t at_once = fits_one_block ? 1 : ConvBlockedKernels::blocks_at_once;
    const int64_t of_group = out_blocks_ / s_.groups, turns_of_group = divide_up(of_group, at_once);
    const int64_t turns = s_.groups * turns_of_group;
    const int64_t work = 1 + count * summed_ * at_once * block_;
    pool_.parallel_for(n_ * n_ * turns, 1 + (128 << 10) / work, [&](int64_t begin, int64_t end) {
      for (int64_t unit = begin; unit < end; ++unit) {
        const int64_t point = unit / turns, group = unit % turns / turns_of_group;
        const int64_t first_block = unit % turns_of_group * at_once, block = group * of_group + first_block;
        multiply(in + point * in_step_ + group * summed_ * count,
                 weights_ + (point * out_blocks_ + block) * summed_ * block_, steps, pixels, count,
                 std::min(at_once, of_group - first_block), out + point * out_step_ + block * count * block_);
      }
    });
    share_tiles(out_blocks_, count, grain, [&](int64_t c, int64_t begin, int64_t end) {
      transform_output(first, begin, end, c, out + c * count * block_);
    });
  }

  // Calls body(block, begin, end) for some tiles of a block at a time. A thread works on all blocks of the same tiles.
  void share_tiles(int64_t blocks, int64_t count, int64_t grain,
                   FunctionRef<void(int64_t, int64_t, int64_t)> body) const {
    const int64_t strips = own_ ? 1 : std::min(count, strips_per_thread * pool_.size());
    pool_.parallel_for(strips * blocks, divide_up(grain * strips, count), [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const int64_t strip = i / blocks;
        body(i % blocks, strip * count / strips, (strip + 1) * count / strips);
      }
    });
  }

  // A tile of the result.
  struct Place {
    int64_t image;
    size_t tile_row, tile_column;
  };
  Place place_of(int64_t tile) const {
    const int64_t columns = std::ssize(columns_), per_image = std::ssize(rows_) * columns;
    return {tile / per_image, static_cast<size_t>(tile % per_image / columns), static_cast<size_t>(tile % columns)};
  }
  void go_on(Place& place) const {
    if (++place.tile_column < columns_.size()) return;
    place.tile_column = 0;
    if (++place.tile_row < rows_.size()) return;
    place.tile_row = 0;
    ++place.image;
  }

  void transform_input(int64_t first, int64_t begin, int64_t end, int64_t c, float* points) const {
    float edge[most_points * 16];
    Place place = place_of(first + begin);
    for (int64_t t = begin; t < end; ++t, go_on(place)) {
      const int64_t row = rows_[place.tile_row] - s_.pad[1], column = columns_[place.tile_column] - s_.pad[2];
      const float* image = x_ + (place.image * in_blocks_ + c) * s_.input[1] * s_.input[2] * block_;
      WinogradInput tile;
      tile.points = points + t * block_;
      tile.point_step = in_step_;
      const bool is_inside = row >= 0 && column >= 0 && row + n_ <= s_.input[1] && column + n_ <= s_.input[2];
      if (is_inside && s_.dilation[1] == 1 && s_.dilation[2] == 1) {
        tile.x = image + (row * s_.input[2] + column) * block_;
        tile.row_step = s_.input[2] * block_;
      } else {
        copy_with_zeros(image, row, column, edge);
        tile.x = edge;
        tile.row_step = n_ * block_;
      }
      transforms_.input[tile_](tile);
    }
  }

  // n by n pixels of an image from (row, column) on, with zeros outside of it.
  void copy_with_zeros(const float* image, int64_t row, int64_t column, float* to) const {
    const int64_t step = s_.dilation[2];
    const int64_t left = std::clamp<int64_t>(divide_up(std::max<int64_t>(0, -column), step), 0, n_);
    const int64_t end = std::clamp<int64_t>(divide_up(std::max<int64_t>(0, s_.input[2] - column), step), left, n_);
    std::fill_n(to, n_ * n_ * block_, 0.0f);
    for (int64_t i = 0; i < n_; ++i) {
      const int64_t from = row + i * s_.dilation[1];
      if (from < 0 || from >= s_.input[1]) continue;
      for (int64_t j = left; j < end; ++j)
        std::copy_n(image + (from * s_.input[2] + column + j * step) * block_, block_, to + (i * n_ + j) * block_);
    }
  }

  // One or two blocks of output channels at one point of all tiles.
  void multiply(const float* in, const float* weights, const std::vector<int64_t>& steps,
                const std::vector<int64_t>& pixels, int64_t count, int64_t blocks, float* out) const {
    const auto* kernels = blocks == 1 ? k_.blocked : k_.two_blocked;
    const int64_t groups = divide_up(count, k_.most_pixels(blocks));
    BlockedTile tile{};
    tile.x = in;
    tile.pixels = pixels.data();
    tile.y = out;
    tile.steps = steps.data();
    tile.step_count = std::ssize(steps);
    tile.weights = weights;
    tile.weight_step = summed_ * block_;
    tile.start = zeros_.data();
    tile.y_step = count * block_;
    const WeightsAhead ahead(weights + blocks * tile.weight_step, tile.weight_step, weights_,
                             weights_ + n_ * n_ * s_.out_channels * summed_, groups, tile.step_count);
    run_tiles(kernels, tile, count, groups, block_, ahead);
  }

  void transform_output(int64_t first, int64_t begin, int64_t end, int64_t c, const float* points) const {
    if (windows_) return transform_and_pool(first, begin, end, c, points);
    Place place = place_of(first + begin);
    for (int64_t t = begin; t < end; ++t, go_on(place)) {
      const int64_t row = rows_[place.tile_row], column = columns_[place.tile_column];
      const int64_t at = (((place.image * out_blocks_ + c) * s_.output[1] + row) * s_.output[2] + column) * block_;
      WinogradOutput tile = tile_at(place, c, points + t * block_);
      tile.residual = epilogue_.residual ? epilogue_.residual + at : nullptr;
      tile.y = y_ + at;
      tile.row_step = s_.dilation[1] * s_.output[2] * block_;
      tile.column_step = s_.dilation[2] * block_;
      store(tile);
    }
  }

  // The maxima of a tile's windows, none of which reaches into another tile.
  void transform_and_pool(int64_t first, int64_t begin, int64_t end, int64_t c, const float* points) const {
    float pixels[most_points * 16];
    Place place = place_of(first + begin);
    for (int64_t t = begin; t < end; ++t, go_on(place)) {
      WinogradOutput tile = tile_at(place, c, points + t * block_);
      tile.residual = nullptr;
      tile.y = pixels;
      tile.row_step = tile_ * block_;
      tile.column_step = block_;
      store(tile);
      const int64_t row = rows_[place.tile_row] / 2, column = columns_[place.tile_column] / 2;
      const int64_t rows = windows_->output[0], columns = windows_->output[1];
      float* to = y_ + (((place.image * out_blocks_ + c) * rows + row) * columns + column) * block_;
      for (int64_t i = 0; i < std::min<int64_t>(tile.rows / 2, rows - row); ++i)
        for (int64_t j = 0; j < std::min<int64_t>(tile.columns / 2, columns - column); ++j)
          store_highest(pixels + 2 * i * tile.row_step + 2 * j * block_, tile.row_step,
                        to + (i * columns + j) * block_);
    }
  }
  // Of two by two pixels.
  void store_highest(const float* pixel, int64_t row_step, float* y) const {
    constexpr int64_t width = vector_bytes / sizeof(float);
    using Vector = VectorOf<float>::Type;
    for (int64_t lane = 0; lane < block_; lane += width) {
      Vector best[2];
      for (int64_t i : {0, 1}) {
        Vector top, bottom;
        std::memcpy(&top, pixel + i * block_ + lane, sizeof top);
        std::memcpy(&bottom, pixel + row_step + i * block_ + lane, sizeof bottom);
        best[i] = extreme_of<true, float>(top, bottom);
      }
      best[0] = extreme_of<true, float>(best[0], best[1]);
      std::memcpy(y + lane, best, sizeof best[0]);
    }
  }

  // What a tile of a block of channels becomes, without the place where it is stored.
  WinogradOutput tile_at(const Place& place, int64_t c, const float* points) const {
    const int64_t row = rows_[place.tile_row], column = columns_[place.tile_column];
    WinogradOutput tile;
    tile.points = points;
    tile.point_step = out_step_;
    tile.bias = epilogue_.bias ? epilogue_.bias + c * block_ : zeros_.data();
    tile.rows = static_cast<int>(std::min<int64_t>(tile_, divide_up(s_.output[1] - row, s_.dilation[1])));
    tile.columns = static_cast<int>(std::min<int64_t>(tile_, divide_up(s_.output[2] - column, s_.dilation[2])));
    tile.lo = epilogue_.lo;
    tile.hi = epilogue_.hi;
    return tile;
  }
  void store(const WinogradOutput& tile) const {
    transforms_.output[tile_](tile);
    if (!epilogue_.activation) return;
    for (int i = 0; i < tile.rows; ++i) activate(tile.y + i * tile.row_step, tile);
  }

  // A row of a tile.
  void activate(float* row, const WinogradOutput& tile) const {
    const int at_once = tile.column_step == block_ ? tile.columns : 1;
    for (int i = 0; i < tile.columns; i += at_once) {
      float* pixels = row + i * tile.column_step;
      epilogue_.activation(pixels, pixels, at_once * block_);
    }
  }

  ThreadPool& pool_;
  const PoolShape* windows_;
  const ConvShape& s_;
  const WinogradKernels& transforms_;
  const ConvBlockedKernels& k_;
  const float* weights_;
  const float* x_;
  float* y_;
  const ConvEpilogue& epilogue_;
  int tile_, n_;
  int64_t block_, in_blocks_, out_blocks_;
  int64_t summed_;                       // input channels of a group
  std::vector<int64_t> rows_, columns_;  // where tiles begin
  bool own_ = true;                      // whether each part has a thread of its own
  int64_t at_once_ = 0, in_step_ = 0, out_step_ = 0;
  std::vector<float> zeros_;
};

bool can_use_winograd(const ConvShape& s) {
  const int64_t channels = s.groups * conv_blocked_kernels().block;
  if (s.kernel[0] != 1 || s.in_channels % channels != 0 || s.out_channels % channels != 0) return false;
  for (int d : {1, 2}) {
    if (s.kernel[d] != 3 || s.stride[d] != 1) return false;
  }
  return true;
}

void conv_winograd(ThreadPool& pool, const ConvShape& shape, const float* x, const WinogradWeights& weights, float* y,
                   const ConvEpilogue& epilogue) {
  if (shape.batch <= 0 || shape.output_size() <= 0 || shape.out_channels <= 0) return;
  WinogradConv(pool, shape, weights, x, y, epilogue).run();
}

bool can_pool_winograd(const ConvShape& s, const PoolShape& windows) {
  for (int d : {0, 1}) {
    if (s.dilation[d + 1] != 1 || windows.kernel[d] != 2 || windows.stride[d] != 2 || windows.dilation[d] != 1 ||
        windows.pad_begin[d] != 0 || 2 * windows.output[d] > windows.input[d])
      return false;
  }
  return true;
}

void conv_winograd_max_pool(ThreadPool& pool, const ConvShape& shape, const PoolShape& windows, const float* x,
                            const WinogradWeights& weights, float* y, const ConvEpilogue& epilogue) {
  if (shape.batch <= 0 || windows.output_size() <= 0 || shape.out_channels <= 0) return;
  WinogradConv(pool, shape, weights, x, y, epilogue, &windows).run();
}

}  // namespace tenon::kernels

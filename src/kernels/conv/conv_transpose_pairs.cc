#include "kernels/conv/conv_transpose_pairs.h"

#include <algorithm>

#include "base/rounding.h"
#include "kernels/gemm/driver.h"
#include "kernels/scratch.h"

namespace tenon::kernels {
namespace {

constexpr int64_t tasks_per_thread = 4;
constexpr int64_t flops_per_task = 200'000;
constexpr int64_t line = 16;  // floats of a cache line

// Panels of pixels that are multiplied before their products become outputs: with few pixels of a panel, most of the
// time would go into beginning and ending rows of outputs.
int64_t panels_at_once(const GemmKernels& kernels) { return kernels.tile_columns < 2 * line ? 8 : 1; }

// Outputs of one group of one image, where all windows are inside of them and nothing else is.
class PairsConv {
 public:
  PairsConv(const ConvShape& shape, const float* x, const PackedMatrix& weights, float* y, const ConvEpilogue& epilogue)
      : s_(shape),
        kernels_(gemm_kernels_of(weights.isa())),
        at_once_(panels_at_once(kernels_)),
        left_(weights),
        right_(kernels_, GemmSide::right, x, shape.input_size(), true, shape.input_size(), false),
        x_(x),
        rows_(weights.rows()),
        k_(weights.columns()),
        k_block_(gemm_k_block(kernels_, k_)),
        y_(y),
        bias_(static_cast<size_t>(rows_)) {
    for (int64_t i = 0; epilogue.bias && i < rows_; ++i)
      bias_[static_cast<size_t>(i)] = epilogue.bias[i / s_.kernel_size()];
    for (int64_t channel = 0; channel < rows_ / s_.kernel_size(); ++channel)
      for (int64_t plane = 0; plane < s_.kernel[0]; ++plane)
        for (int64_t row = 0; row < s_.kernel[1]; ++row)
          y_offsets_.push_back(channel * s_.output_size() + (plane * s_.output[1] + row) * s_.output[2]);
    tile_.ldc = at_once_ * kernels_.tile_columns;
    tile_.columns = kernels_.tile_columns;
    tile_.alpha = tile_.beta = 1;
    tile_.addend_row_stride = 1;
    tile_.lo = epilogue.lo;
    tile_.hi = epilogue.hi;
    tile_.ahead_step = s_.input_size() * static_cast<int64_t>(sizeof(float));
    has_limits_ = has_limits({.lo = epilogue.lo, .hi = epilogue.hi});
  }

  int64_t row_panels() const { return divide_up(rows_, int64_t{kernels_.tile_rows}); }
  int64_t column_panels() const { return divide_up(s_.input_size(), int64_t{kernels_.tile_columns}); }
  // Of panels of pixels.
  int64_t column_groups() const { return divide_up(column_panels(), at_once_); }
  int64_t flops_of_group() const { return 2 * kernels_.tile_rows * kernels_.tile_columns * k_ * at_once_; }

  // The rows of panels [begin, end) for the pixels of one group.
  void run(int64_t group, int64_t begin, int64_t end) const {
    const int64_t width = kernels_.tile_columns, height = kernels_.tile_rows, panel_floats = k_ * width;
    const int64_t first_panel = group * at_once_, panels = std::min(at_once_, column_panels() - first_panel);
    const Scratch scratch(static_cast<size_t>(panels * panel_floats + height * tile_.ldc) * sizeof(float));
    float *packed = scratch.as<float>(), *sums = packed + panels * panel_floats;
    right_.pack(0, k_, first_panel, first_panel + panels, packed);
    const std::vector<Piece> pieces = pieces_of(first_panel, panels);
    for (int64_t panel = begin; panel < end; ++panel) {
      const int64_t first = panel * height, count = std::min(height, rows_ - first);
      for (int64_t j = 0; j < panels; ++j) {
        const float* next = x_ + std::min(first_panel + j + at_once_, column_panels() - 1) * width;
        multiply(panel, count, packed + j * panel_floats, next, sums + j * width);
      }
      for (int64_t row = 0; row < count; row += 2) {
        fetch(pieces, std::min(first + row + height, rows_ - 2));
        for (const Piece& piece : pieces)
          kernels_.interleave(sums + row * tile_.ldc + piece.first, sums + (row + 1) * tile_.ldc + piece.first,
                              piece.count, y_ + y_offset(first + row) + piece.y);
      }
    }
  }

 private:
  // Pixels of some panels that lie side by side in a row, and where the outputs of the first tap begin.
  struct Piece {
    int64_t first, count, y;
  };

  std::vector<Piece> pieces_of(int64_t panel, int64_t panels) const {
    std::vector<Piece> pieces;
    const int64_t begin = panel * kernels_.tile_columns,
                  end = std::min((panel + panels) * kernels_.tile_columns, s_.input_size());
    for (int64_t pixel = begin; pixel < end; pixel += pieces.back().count) {
      const int64_t column = pixel % s_.input[2], row = pixel / s_.input[2] % s_.input[1],
                    plane = pixel / s_.input[2] / s_.input[1];
      pieces.push_back({pixel - begin, std::min(s_.input[2] - column, end - pixel),
                        (plane * s_.stride[0] * s_.output[1] + row * s_.stride[1]) * s_.output[2] + 2 * column});
    }
    return pieces;
  }

  // Where the outputs of two rows of the product begin.
  int64_t y_offset(int64_t row) const { return y_offsets_[static_cast<size_t>(row / 2)]; }

  // What these rows are going to write.
  void fetch(const std::vector<Piece>& pieces, int64_t row) const {
    for (const Piece& piece : pieces)
      for (int64_t i = 0; i < 2 * piece.count; i += line) __builtin_prefetch(y_ + y_offset(row) + piece.y + i, 0, 2);
  }

  // `next` is what the panel of pixels after this one is packed from; every second tile fetches the same lines of it.
  void multiply(int64_t panel, int64_t count, const float* packed, const float* next, float* sums) const {
    const int64_t width = kernels_.tile_columns;
    GemmTile tile = tile_;
    tile.c = sums;
    for (int64_t k_begin = 0; k_begin < k_; k_begin += k_block_) {
      const int64_t k = std::min(k_block_, k_ - k_begin);
      tile.accumulate = k_begin > 0;
      tile.addend = tile.accumulate ? nullptr : bias_.data() + panel * kernels_.tile_rows;
      tile.clamp = has_limits_ && k_begin + k == k_;
      tile.ahead = reinterpret_cast<const std::byte*>(next + k_begin * s_.input_size() + panel % 2 * line);
      kernels_.by_rows[count](k, left_.ready_panel(k_begin, k, panel).data, {packed + k_begin * width, width}, tile);
    }
  }

  const ConvShape& s_;
  const GemmKernels& kernels_;
  int64_t at_once_;  // panels of pixels
  PackedPanels left_;
  MatrixPanels right_;
  const float* x_;
  int64_t rows_, k_, k_block_;
  float* y_;
  std::vector<float> bias_;         // of each row
  std::vector<int64_t> y_offsets_;  // of each two rows
  GemmTile tile_{};
  bool has_limits_;
};

void run_pairs(ThreadPool* pool, const PairsConv& conv) {
  const int64_t wanted = pool ? tasks_per_thread * pool->size() : 1;
  const int64_t parts = std::min(conv.row_panels(), divide_up(wanted, conv.column_groups()));
  const auto run = [&](int64_t begin, int64_t end) {
    for (int64_t task = begin; task < end; ++task) {
      const int64_t part = task % parts;
      conv.run(task / parts, part * conv.row_panels() / parts, (part + 1) * conv.row_panels() / parts);
    }
  };
  const int64_t tasks = conv.column_groups() * parts;
  if (!pool) return run(0, tasks);
  pool->parallel_for(tasks, 1 + flops_per_task / (conv.flops_of_group() * conv.row_panels() / parts + 1), run);
}

// The convolution whose outputs are all windows.
ConvShape whole_shape(const ConvShape& shape) {
  ConvShape whole = shape;
  for (int d = 0; d < 3; ++d) {
    whole.pad[d] = 0;
    whole.output[d] = shape.input[d] * shape.stride[d];
  }
  return whole;
}

// One channel of these outputs: a part of it, and `outside` where it has none.
void crop(const ConvShape& shape, const ConvShape& whole, const float* from, float outside, float* to) {
  const int64_t left = std::clamp<int64_t>(-shape.pad[2], 0, shape.output[2]);
  const int64_t right = std::clamp<int64_t>(whole.output[2] - shape.pad[2], left, shape.output[2]);
  for (int64_t plane = shape.pad[0]; plane < shape.pad[0] + shape.output[0]; ++plane)
    for (int64_t row = shape.pad[1]; row < shape.pad[1] + shape.output[1]; ++row, to += shape.output[2]) {
      const bool is_inside = plane >= 0 && plane < whole.output[0] && row >= 0 && row < whole.output[1];
      std::fill_n(to, shape.output[2], outside);
      if (is_inside && left < right)
        std::copy_n(from + (plane * whole.output[1] + row) * whole.output[2] + shape.pad[2] + left, right - left,
                    to + left);
    }
}

}  // namespace

bool suits_pairs(const ConvShape& s) {
  for (int d = 0; d < 3; ++d)
    if (s.kernel[d] != s.stride[d] || (s.kernel[d] > 1 && s.dilation[d] != 1)) return false;
  return s.kernel[2] == 2 && gemm_kernels().tile_rows % 2 == 0;
}

void conv_transpose_pairs(ThreadPool* pool, const ConvShape& shape, const float* x, const PackedMatrix& weights,
                          float* y, const ConvEpilogue& epilogue) {
  const ConvShape whole = whole_shape(shape);
  const bool is_whole =
      std::equal(shape.pad, shape.pad + 3, whole.pad) && std::equal(shape.output, shape.output + 3, whole.output);
  if (is_whole) return run_pairs(pool, PairsConv(whole, x, weights, y, epilogue));
  const int64_t channels = weights.rows() / shape.kernel_size();
  const Scratch scratch(static_cast<size_t>(channels * whole.output_size()) * sizeof(float));
  if (whole.output_size() > 0) run_pairs(pool, PairsConv(whole, x, weights, scratch.as<float>(), epilogue));
  const auto copy = [&](int64_t begin, int64_t end) {
    for (int64_t c = begin; c < end; ++c) {
      const float bias = epilogue.bias ? epilogue.bias[c] : 0.0f;
      crop(shape, whole, scratch.as<float>() + c * whole.output_size(),
           std::min(std::max(bias, epilogue.lo), epilogue.hi), y + c * shape.output_size());
    }
  };
  if (!pool) return copy(0, channels);
  pool->parallel_for(channels, 1 + 16384 / (shape.output_size() + 1), copy);
}

}  // namespace tenon::kernels

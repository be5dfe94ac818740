#include "kernels/conv/rows.h"

#include <algorithm>

namespace tenon::kernels {
namespace {

constexpr int64_t most_weights = 32 << 10;  // they stay in a cache
constexpr int64_t most_in_channels = 32;    // each is in pages of its own
constexpr int64_t flops_per_task = 200'000;
constexpr int64_t columns_of_overhead = 4;  // what a tile costs beside its columns

constexpr int64_t divide_up(int64_t a, int64_t b) { return (a + b - 1) / b; }

// How the outputs of a row are shared between tiles: wide ones, then narrow ones. The last may reach beyond the row.
struct RowTiles {
  RowTiles(int64_t outputs, const GemmKernels& kernels) {
    const int64_t width = kernels.tile_columns, narrow_width = kernels.narrow_columns;
    int64_t least = -1;
    for (int64_t few = 0; few <= width / narrow_width + 1; ++few) {
      const int64_t many = divide_up(std::max<int64_t>(0, outputs - few * narrow_width), width);
      const int64_t cost = many * (width + columns_of_overhead) + few * (narrow_width + columns_of_overhead);
      if (least >= 0 && cost >= least) continue;
      least = cost;
      wide = many;
      narrow = few;
    }
  }
  int64_t wide = 0;
  int64_t narrow = 0;
};

struct RowConv {
  const GemmKernels& kernels;
  const RowsImage& image;
  const PackedMatrix& weights;
  float* y;
  int64_t ldc;
  const GemmEpilogue& epilogue;
  const ConvShape& shape = image.shape;
  const ImageLayout& layout = image.layout;
  const RowTiles tiles{shape.output[2], kernels};
  const int64_t k_block = gemm_k_block(kernels, weights.columns());

  int64_t rows() const { return shape.output[0] * shape.output[1]; }
  int64_t panels() const { return divide_up(weights.rows(), kernels.tile_rows); }

  // Output rows [begin, end) of the channels of one left panel.
  void run(int64_t panel, int64_t begin, int64_t end) const {
    const int64_t first = panel * kernels.tile_rows, columns = shape.output[2];
    const auto channels = static_cast<int>(std::min<int64_t>(kernels.tile_rows, weights.rows() - first));
    for (int64_t row = begin; row < end; ++row) {
      const float* x = image.data + row / shape.output[1] * shape.stride[0] * layout.plane +
                       row % shape.output[1] * shape.stride[1] * layout.row;
      const int64_t at = first * ldc + row * columns;
      int64_t column = 0;
      for (int64_t i = 0; i < tiles.wide + tiles.narrow; ++i) {
        const bool is_wide = i < tiles.wide;
        const int width = is_wide ? kernels.tile_columns : kernels.narrow_columns;
        // What a tile has beyond the row is replaced when the rows after it come.
        const bool fits = column + width <= (end - row) * columns;
        multiply((is_wide ? kernels.by_rows : kernels.narrow_by_rows)[channels], panel, x + column, at + column,
                 fits ? width : static_cast<int>(columns - column));
        column += width;
      }
    }
    if (!epilogue.activation) return;
    for (int64_t c = first; c < first + channels; ++c) {
      float* out = y + c * ldc + begin * columns;
      epilogue.activation(out, out, (end - begin) * columns);
    }
  }

 private:
  void multiply(GemmTileKernel kernel, int64_t panel, const float* x, int64_t at, int columns) const {
    const GemmEpilogue& e = epilogue;
    const PackedPanels left(weights);
    const int64_t k = weights.columns(), first = panel * kernels.tile_rows;
    GemmTile tile{};
    tile.c = y + at;
    tile.ldc = ldc;
    tile.columns = columns;
    tile.alpha = e.alpha;
    tile.beta = e.beta;
    tile.addend = e.addend ? e.addend + first * e.addend_row_stride : nullptr;
    tile.addend_row_stride = e.addend_row_stride;
    tile.lo = e.lo;
    tile.hi = e.hi;
    tile.ahead = reinterpret_cast<const std::byte*>(tile.c);
    for (int64_t k_begin = 0; k_begin < k; k_begin += k_block) {
      const int64_t steps = std::min(k_block, k - k_begin);
      const bool is_last = k_begin + steps == k;
      tile.accumulate = k_begin > 0;
      tile.residual = e.residual && is_last ? e.residual + at : nullptr;
      tile.clamp = is_last && has_limits(e);
      kernel(steps, left.ready_panel(k_begin, steps, panel).data, {x, 0, image.offsets.data() + k_begin}, tile);
    }
  }
};

}  // namespace

bool suits_rows(const ConvShape& shape, int64_t channels) {
  const int64_t in_channels = shape.in_channels / shape.groups;
  return in_channels <= most_in_channels && channels * in_channels * shape.kernel_size() <= most_weights;
}

void conv_rows(ThreadPool* pool, const GemmKernels& kernels, const RowsImage& image, const PackedMatrix& weights,
               float* y, int64_t ldc, const GemmEpilogue& epilogue) {
  const RowConv conv{kernels, image, weights, y, ldc, epilogue};
  const int64_t rows = conv.rows();
  // Rows of all panels, one panel after the other.
  const auto run = [&](int64_t begin, int64_t end) {
    while (begin < end) {
      const int64_t panel = begin / rows, row = begin % rows, row_end = std::min(rows, row + end - begin);
      conv.run(panel, row, row_end);
      begin += row_end - row;
    }
  };
  const int64_t total = conv.panels() * rows;
  if (!pool) return run(0, total);
  const int64_t flops_of_row = 2 * kernels.tile_rows * weights.columns() * image.shape.output[2];
  pool->parallel_for(total, 1 + flops_per_task / (flops_of_row + 1), run);
}

}  // namespace tenon::kernels

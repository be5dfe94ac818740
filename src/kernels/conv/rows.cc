#include "kernels/conv/rows.h"

#include <algorithm>

#include "base/rounding.h"

namespace tenon::kernels {
namespace {

constexpr int64_t most_weights = 32 << 10;  // they stay in a cache
constexpr int64_t most_in_channels = 32;    // each is in pages of its own
constexpr int64_t flops_per_task = 200'000;
constexpr int64_t columns_of_overhead = 4;  // what a tile costs beside its columns

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

class RowConv {
 public:
  RowConv(const GemmKernels& kernels, const RowsImage& image, const PackedMatrix& weights, float* y, int64_t ldc,
          const GemmEpilogue& epilogue)
      : kernels_(kernels),
        image_(image),
        left_(weights),
        channels_(weights.rows()),
        k_(weights.columns()),
        k_block_(gemm_k_block(kernels, k_)),
        y_(y),
        ldc_(ldc),
        epilogue_(epilogue),
        has_limits_(has_limits(epilogue)),
        tiles_(image.shape.output[2], kernels) {}

  int64_t rows() const { return image_.shape.output[0] * image_.shape.output[1]; }
  int64_t panels() const { return divide_up(channels_, kernels_.tile_rows); }

  // Output rows [begin, end) of the channels of one left panel.
  void run(int64_t panel, int64_t begin, int64_t end) const {
    const ConvShape& shape = image_.shape;
    const int64_t first = panel * kernels_.tile_rows, columns = shape.output[2];
    const auto height = static_cast<size_t>(std::min<int64_t>(kernels_.tile_rows, channels_ - first));
    GemmTile tile = tile_of(first);
    for (int64_t row = begin; row < end; ++row) {
      const float* x = image_.data + row / shape.output[1] * shape.stride[0] * image_.layout.plane +
                       row % shape.output[1] * shape.stride[1] * image_.layout.row;
      const auto run_tiles = [&](const GemmTilesKernel* kernels, int width, int64_t number, int64_t column) {
        if (number == 0) return;
        // What the last tile has beyond the row is replaced when the rows after it come.
        const int64_t last = column + (number - 1) * width;
        tile.columns = last + width <= (end - row) * columns ? width : static_cast<int>(columns - last);
        multiply(kernels[height], panel, x + column, first * ldc_ + row * columns + column, number, tile);
      };
      run_tiles(kernels_.tiles_by_rows, kernels_.tile_columns, tiles_.wide, 0);
      run_tiles(kernels_.narrow_tiles_by_rows, kernels_.narrow_columns, tiles_.narrow,
                tiles_.wide * kernels_.tile_columns);
    }
    if (!epilogue_.activation) return;
    for (int64_t c = first; c < first + static_cast<int64_t>(height); ++c) {
      float* out = y_ + c * ldc_ + begin * columns;
      epilogue_.activation(out, out, (end - begin) * columns);
    }
  }

 private:
  // What the tiles of a left panel, whose first channel is `first`, have in common.
  GemmTile tile_of(int64_t first) const {
    const GemmEpilogue& e = epilogue_;
    GemmTile tile{};
    tile.ldc = ldc_;
    tile.alpha = e.alpha;
    tile.beta = e.beta;
    tile.addend = e.addend ? e.addend + first * e.addend_row_stride : nullptr;
    tile.addend_row_stride = e.addend_row_stride;
    tile.lo = e.lo;
    tile.hi = e.hi;
    return tile;
  }

  void multiply(GemmTilesKernel kernel, int64_t panel, const float* x, int64_t at, int64_t tiles,
                GemmTile& tile) const {
    tile.c = y_ + at;
    for (int64_t k_begin = 0; k_begin < k_; k_begin += k_block_) {
      const int64_t steps = std::min(k_block_, k_ - k_begin);
      const bool is_last = k_begin + steps == k_;
      tile.accumulate = k_begin > 0;
      tile.residual = epilogue_.residual && is_last ? epilogue_.residual + at : nullptr;
      tile.clamp = is_last && has_limits_;
      kernel(steps, left_.ready_panel(k_begin, steps, panel).data, x, image_.offsets.data() + k_begin, tiles, tile);
    }
  }

  const GemmKernels& kernels_;
  const RowsImage& image_;
  PackedPanels left_;
  int64_t channels_, k_, k_block_;
  float* y_;
  int64_t ldc_;
  const GemmEpilogue& epilogue_;
  bool has_limits_;
  RowTiles tiles_;
};

}  // namespace

bool suits_rows(const ConvShape& shape, const ImageLayout& layout, int64_t channels) {
  const int64_t in_channels = shape.in_channels / shape.groups;
  return layout.column_step == 1 && in_channels <= most_in_channels &&
         channels * in_channels * shape.kernel_size() <= most_weights;
}

void conv_rows(ThreadPool* pool, const GemmKernels& kernels, const RowsImage& image, const PackedMatrix& weights,
               float* y, int64_t ldc, const GemmEpilogue& epilogue) {
  const RowConv conv(kernels, image, weights, y, ldc, epilogue);
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

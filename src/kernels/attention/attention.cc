#include "kernels/attention/attention.h"

#include <algorithm>
#include <limits>

#include "base/rounding.h"
#include "kernels/gemm/driver.h"
#include "kernels/gemm/pack.h"
#include "kernels/gemm/tile.h"
#include "kernels/scratch.h"

namespace tenon::kernels {
namespace {

// Keys that are packed together: with their values they stay in the second cache.
constexpr int64_t keys_at_once = 256;

// Rows that are a power of two apart share few places in the first cache.
int64_t row_step(int64_t columns) { return columns % 64 == 0 ? columns + 16 : columns; }

// Whether rows of the left side of a product, so far apart, are multiplied where they are.
bool reads_in_place(const GemmKernels& kernels, int64_t step) {
  constexpr int64_t floats_of_page = 1024;
  return kernels.reads_many_columns_in_place && step % floats_of_page != 0;
}

// The left side of a product: so many rows where they are, then panels; or all steps where they are.
struct LeftSide {
  GemmPanel rows;
  int64_t row_count;
  const float* panels;
  GemmPanel steps;
};

// The right side: panel i starts i * panel_step floats from the first one.
struct RightPanels {
  const float* data;
  int64_t panel_step, row_step;
};

// c = alpha * a * b, or c += that.
void multiply(const GemmKernels& kernels, int64_t m, int64_t n, int64_t k, const LeftSide& a, const RightPanels& b,
              float* c, int64_t ldc, float alpha, bool accumulate) {
  GemmTile tile{};
  tile.ldc = ldc;
  tile.alpha = alpha;
  tile.accumulate = accumulate;
  for (int64_t j = 0; j < divide_up(n, kernels.tile_columns); ++j) {
    const GemmPanel panel{b.data + j * b.panel_step, b.row_step};
    tile.columns = static_cast<int>(std::min<int64_t>(kernels.tile_columns, n - j * kernels.tile_columns));
    tile.ahead = reinterpret_cast<const std::byte*>(panel.data);
    for (int64_t i = 0; i < m; i += kernels.tile_rows) {
      const auto rows = std::min<int64_t>(kernels.tile_rows, m - i);
      tile.c = c + i * ldc + j * kernels.tile_columns;
      if (a.steps.data)
        kernels.steps_in_place[rows](k, {a.steps.data + i, a.steps.stride}, panel, tile);
      else if (i < a.row_count)
        kernels.rows_in_place(k, {a.rows.data + i * a.rows.stride, a.rows.stride}, panel, tile);
      else
        kernels.by_rows[rows](k, a.panels + (i - a.row_count) * k, panel, tile);
    }
  }
}

// Scores are transposed, a column for each query: then the softmax needs no sums across lanes, and its weights are
// multiplied where they are. As many columns at a time as leave their scores in the first cache.
class HeadAttention {
 public:
  explicit HeadAttention(const AttentionHead& head)
      : h_(head),
        columns_(divide_up(head.query_count, softmax_.width) * softmax_.width),
        packed_columns_(divide_up(columns_, gemm_.tile_columns) * gemm_.tile_columns),
        columns_at_once_(std::min<int64_t>(divide_up(softmax_.columns_at_once, gemm_.tile_columns) * gemm_.tile_columns,
                                           packed_columns_)),
        step_(row_step(columns_)),
        most_keys_(std::min(keys_at_once, head.key_count)),
        packed_v_size_(makes_rows_ ? divide_up(h_.v_size, gemm_.tile_columns) * gemm_.tile_columns : h_.v_size),
        scratch_(static_cast<size_t>(packed_columns_ * h_.k_size + columns_at_once_ * most_keys_ + 4 * columns_ +
                                     (makes_rows_ ? 0 : step_ * h_.v_size) +
                                     most_keys_ * (h_.k_size + packed_v_size_)) *
                 sizeof(float)),
        queries_(scratch_.as<float>()),
        scores_(queries_ + packed_columns_ * h_.k_size),
        highest_(scores_ + columns_at_once_ * most_keys_),
        sums_(highest_ + columns_),
        factors_(sums_ + columns_),
        factor_sums_(factors_ + columns_),
        keys_(factor_sums_ + columns_),
        values_(keys_ + most_keys_ * h_.k_size),
        results_(values_ + most_keys_ * packed_v_size_) {}

  void run() {
    const int64_t panels = divide_up(h_.query_count, gemm_.tile_columns);
    const MatrixPanels queries(gemm_, GemmSide::right, h_.queries.data, h_.queries.step, false, h_.query_count, false);
    queries.pack(0, h_.k_size, 0, panels, queries_);
    // The last columns of a vector may begin a panel that has no query.
    std::fill(queries_ + panels * gemm_.tile_columns * h_.k_size, queries_ + packed_columns_ * h_.k_size, 0.0f);
    std::fill_n(highest_, columns_, -std::numeric_limits<float>::infinity());
    std::fill_n(sums_, columns_, 0.0f);
    for (int64_t first = 0; first == 0 || first < h_.key_count; first += keys_at_once)
      add_keys(first, std::min(first + keys_at_once, h_.key_count));
    for (int64_t i = 0; i < columns_; ++i) factors_[i] = sums_[i] == 0 ? 0 : 1 / sums_[i];
    scale_results(0, columns_);
    if (!makes_rows_) transpose_matrix(results_, step_, h_.v_size, h_.query_count, h_.out, h_.out_step);
  }

 private:
  void add_keys(int64_t first, int64_t last) {
    const int64_t count = last - first, step = h_.keys.step, height = gemm_.tile_rows;
    const float* from = h_.keys.data + first * step;
    const int64_t in_place = reads_in_place(gemm_, step) ? count / height * height : 0;
    pack_panels(from + in_place * step, step, false, count - in_place, h_.k_size, gemm_.tile_rows, false, keys_);
    const int width = makes_rows_ ? gemm_.tile_columns : gemm_.tile_rows;
    pack_panels(h_.values.data + first * h_.values.step, h_.values.step, true, h_.v_size, count, width, makes_rows_,
                values_);
    for (int64_t column = 0; column < columns_; column += columns_at_once_)
      add_columns(first, last, {{from, step}, in_place, keys_, {}}, column,
                  std::min(column + columns_at_once_, columns_));
  }

  // Keys [first, last) for queries [begin, end); the last ones of these need not be there.
  void add_columns(int64_t first, int64_t last, const LeftSide& keys, int64_t begin, int64_t end) {
    const int64_t count = last - first, columns = end - begin, width = gemm_.tile_columns;
    multiply(gemm_, count, columns, h_.k_size, keys, {queries_ + begin * h_.k_size, width * h_.k_size, width}, scores_,
             columns_at_once_, h_.scale, false);
    const int64_t last_query = std::min(end, h_.query_count);
    h_.change({first, last, begin, last_query, scores_, columns_at_once_});
    std::copy(highest_ + begin, highest_ + end, factors_ + begin);
    softmax_.find_highest(scores_, count, columns_at_once_, columns, highest_ + begin);
    if (first > 0) lower_what_is_there(begin, end);
    softmax_.to_weights(scores_, count, columns_at_once_, columns, highest_ + begin, sums_ + begin);
    if (makes_rows_)
      multiply(gemm_, last_query - begin, h_.v_size, count, {{}, 0, nullptr, {scores_, columns_at_once_}},
               {values_, width * count, width}, h_.out + begin * h_.out_step, h_.out_step, 1, first > 0);
    else
      multiply(gemm_, h_.v_size, columns, count, {{}, 0, values_, {}}, {scores_, width, columns_at_once_},
               results_ + begin, step_, 1, first > 0);
  }

  // Sums and results so far, which are relative to other highest scores, those in factors_.
  void lower_what_is_there(int64_t begin, int64_t end) {
    softmax_.to_weights(factors_ + begin, 1, columns_, end - begin, highest_ + begin, factor_sums_ + begin);
    if (std::all_of(factors_ + begin, factors_ + end, [](float factor) { return factor == 1; })) return;
    for (int64_t i = begin; i < end; ++i) sums_[i] *= factors_[i];
    scale_results(begin, end);
  }

  // Those of queries [begin, end).
  void scale_results(int64_t begin, int64_t end) {
    if (!makes_rows_) {
      for (int64_t v = 0; v < h_.v_size; ++v) {
        float* row = results_ + v * step_;
        for (int64_t i = begin; i < end; ++i) row[i] *= factors_[i];
      }
      return;
    }
    for (int64_t i = begin; i < std::min(end, h_.query_count); ++i) {
      float* row = h_.out + i * h_.out_step;
      const float factor = factors_[i];
      for (int64_t v = 0; v < h_.v_size; ++v) row[v] *= factor;
    }
  }

  const AttentionHead& h_;
  const GemmKernels& gemm_ = gemm_kernels();
  const AttentionKernels& softmax_ = attention_kernels();
  // Whether weights are the left side of a product, where they are, so that results are rows of `out`. Else they are
  // the right side, and results are transposed.
  const bool makes_rows_ = h_.key_count <= gemm_.most_steps_in_place;
  const int64_t columns_, packed_columns_, columns_at_once_, step_, most_keys_, packed_v_size_;
  const Scratch scratch_;
  float* const queries_;  // in panels
  float* const scores_;   // [keys][columns_at_once_]; then their weights
  float *const highest_, *const sums_, *const factors_, *const factor_sums_;  // of each column
  float *const keys_, *const values_;                                         // in panels
  float* const results_;                                                      // [v_size][step], if transposed
};

}  // namespace

Isa attention_isa() { return attention_kernels().isa; }

void attention(const AttentionHead& head) {
  if (head.query_count > 0 && head.v_size > 0) HeadAttention(head).run();
}

}  // namespace tenon::kernels

#include "kernels/attention/attention.h"

#include <algorithm>
#include <limits>

#include "base/rounding.h"
#include "kernels/gemm/pack.h"
#include "kernels/gemm/tile.h"
#include "kernels/scratch.h"

namespace tenon::kernels {
namespace {

// Keys whose scores lie in the second cache together.
constexpr int64_t keys_at_once = 256;

// Rows that are a power of two apart share few places in the first cache.
int64_t row_step(int64_t columns) { return columns % 64 == 0 ? columns + 16 : columns; }

// The right side of a product: panel i starts i * panel_step floats from the first one.
struct RightPanels {
  const float* data;
  int64_t panel_step, row_step;
};

// c = alpha * a * b, or c += that, where `a` is packed in panels and n is a multiple of a vector.
void multiply(const GemmKernels& kernels, int64_t m, int64_t n, int64_t k, const float* a, const RightPanels& b,
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
      tile.c = c + i * ldc + j * kernels.tile_columns;
      kernels.by_rows[std::min<int64_t>(kernels.tile_rows, m - i)](k, a + i * k, panel, tile);
    }
  }
}

// Scores and results are transposed, a column for each query: then the softmax needs no sums across lanes, and its
// weights are multiplied where they are.
class HeadAttention {
 public:
  explicit HeadAttention(const AttentionHead& head)
      : h_(head),
        columns_(divide_up(head.query_count, softmax_.width) * softmax_.width),
        packed_columns_(divide_up(head.query_count, gemm_.tile_columns) * gemm_.tile_columns),
        step_(row_step(columns_)),
        most_keys_(std::min(keys_at_once, head.key_count)),
        scratch_(static_cast<size_t>(packed_columns_ * h_.k_size + step_ * (most_keys_ + h_.v_size + 4) +
                                     most_keys_ * std::max(h_.k_size, h_.v_size)) *
                 sizeof(float)),
        queries_(scratch_.as<float>()),
        scores_(queries_ + packed_columns_ * h_.k_size),
        results_(scores_ + step_ * most_keys_),
        highest_(results_ + step_ * h_.v_size),
        sums_(highest_ + columns_),
        factors_(sums_ + columns_),
        factor_sums_(factors_ + columns_),
        panels_(factor_sums_ + columns_) {}

  void run() {
    pack_panels(h_.queries.data, h_.queries.step, false, h_.query_count, h_.k_size, gemm_.tile_columns, true, queries_);
    std::fill_n(highest_, columns_, -std::numeric_limits<float>::infinity());
    std::fill_n(sums_, columns_, 0.0f);
    for (int64_t first = 0; first == 0 || first < h_.key_count; first += keys_at_once)
      add_keys(first, std::min(first + keys_at_once, h_.key_count));
    for (int64_t i = 0; i < columns_; ++i) factors_[i] = sums_[i] == 0 ? 0 : 1 / sums_[i];
    scale_results();
    transpose_matrix(results_, step_, h_.v_size, h_.query_count, h_.out, h_.out_step);
  }

 private:
  void add_keys(int64_t first, int64_t last) {
    const int64_t count = last - first;
    pack_panels(h_.keys.data + first * h_.keys.step, h_.keys.step, false, count, h_.k_size, gemm_.tile_rows, false,
                panels_);
    multiply(gemm_, count, columns_, h_.k_size, panels_, {queries_, gemm_.tile_columns * h_.k_size, gemm_.tile_columns},
             scores_, step_, h_.scale, false);
    h_.change(first, last, scores_, step_);
    std::copy_n(highest_, columns_, factors_);
    softmax_.find_highest(scores_, count, step_, columns_, highest_);
    if (first > 0) lower_what_is_there();
    softmax_.to_weights(scores_, count, step_, columns_, highest_, sums_);
    pack_panels(h_.values.data + first * h_.values.step, h_.values.step, true, h_.v_size, count, gemm_.tile_rows, false,
                panels_);
    multiply(gemm_, h_.v_size, columns_, count, panels_, {scores_, gemm_.tile_columns, step_}, results_, step_, 1,
             first > 0);
  }

  // Sums and results so far, which are relative to other highest scores, those in factors_.
  void lower_what_is_there() {
    softmax_.to_weights(factors_, 1, columns_, columns_, highest_, factor_sums_);
    if (std::all_of(factors_, factors_ + columns_, [](float factor) { return factor == 1; })) return;
    for (int64_t i = 0; i < columns_; ++i) sums_[i] *= factors_[i];
    scale_results();
  }

  void scale_results() {
    for (int64_t v = 0; v < h_.v_size; ++v) {
      float* row = results_ + v * step_;
      for (int64_t i = 0; i < columns_; ++i) row[i] *= factors_[i];
    }
  }

  const AttentionHead& h_;
  const GemmKernels& gemm_ = gemm_kernels();
  const AttentionKernels& softmax_ = attention_kernels();
  const int64_t columns_, packed_columns_, step_, most_keys_;
  const Scratch scratch_;
  float* const queries_;                                                      // in panels
  float* const scores_;                                                       // [keys][step]; then their weights
  float* const results_;                                                      // [v_size][step]
  float *const highest_, *const sums_, *const factors_, *const factor_sums_;  // of each column
  float* const panels_;                                                       // of keys, then of values
};

}  // namespace

Isa attention_isa() { return attention_kernels().isa; }

void attention(const AttentionHead& head) {
  if (head.query_count > 0 && head.v_size > 0) HeadAttention(head).run();
}

}  // namespace tenon::kernels

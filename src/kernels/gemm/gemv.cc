#include "kernels/gemm/gemv.h"

#include <algorithm>

namespace tenon::kernels {
namespace {

constexpr int64_t columns_at_once = 1024;
constexpr int64_t floats_per_task = 16 << 10;
// The rows of x, dense and `k` apart.
struct Rows {
  const float* data;
  int64_t m, k;
};

void finish(float* product, int64_t i, int64_t begin, int64_t end, StridedRows<float> out, const GemmEpilogue& e) {
  float* to = out.data + i * out.row_stride;
  const float* addend = e.addend ? e.addend + i * e.addend_row_stride : nullptr;
  const float* residual = e.residual ? e.residual + i * out.row_stride : nullptr;
  for (int64_t j = begin; j < end; ++j) {
    float v = product[j - begin] * e.alpha;
    if (addend) v += e.beta * addend[j * e.addend_column_stride];
    if (residual) v += residual[j * out.column_stride];
    v = e.lo > v ? e.lo : v;
    product[j - begin] = e.hi < v ? e.hi : v;
  }
  if (e.activation) e.activation(product, product, end - begin);
  for (int64_t j = begin; j < end; ++j) to[j * out.column_stride] = product[j - begin];
}

// f(first, count) for rows that kernels take at once.
template <class Function>
void each_few_rows(int64_t m, Function f) {
  for (int64_t i = 0; i < m; i += most_gemv_rows_at_once) f(i, std::min<int64_t>(most_gemv_rows_at_once, m - i));
}

// Columns [begin, end) of a matrix that is not transposed: four of its rows at a time serve every row of x.
void add_rows(const GemmKernels& kernels, const Rows& x, const GemmMatrix& b, int64_t begin, int64_t end,
              float* product) {
  const int64_t n = end - begin;
  std::fill(product, product + x.m * n, 0.0f);
  const float* row = b.data + begin;
  int64_t p = 0;
  for (; p + 4 <= x.k; p += 4, row += 4 * b.ld) {
    each_few_rows(x.m, [&](int64_t i, int64_t rows) {
      kernels.add_4_rows[rows](x.data + i * x.k + p, x.k, row, b.ld, product + i * n, n, n);
    });
  }
  for (; p < x.k; ++p, row += b.ld) {
    for (int64_t i = 0; i < x.m; ++i) {
      for (int64_t j = 0; j < n; ++j) product[i * n + j] += x.data[i * x.k + p] * row[j];
    }
  }
}

void dot_rows(const GemmKernels& kernels, const Rows& x, const GemmMatrix& b, int64_t begin, int64_t end,
              float* product) {
  const int64_t n = end - begin;
  int64_t j = begin;
  for (; j + 4 <= end; j += 4) {
    for (int64_t i = 0; i < x.m; ++i) {
      kernels.dot_4_rows(x.data + i * x.k, b.data + j * b.ld, b.ld, product + i * n + (j - begin), x.k);
    }
  }
  for (; j < end; ++j) {
    for (int64_t i = 0; i < x.m; ++i) {
      float same[4];
      kernels.dot_4_rows(x.data + i * x.k, b.data + j * b.ld, 0, same, x.k);
      product[i * n + (j - begin)] = same[0];
    }
  }
}

}  // namespace

void gemv(ThreadPool* pool, const GemmKernels& kernels, int64_t m, int64_t n, int64_t k, StridedRows<const float> x,
          GemmMatrix b, StridedRows<float> out, const GemmEpilogue& epilogue) {
  const bool dense = x.column_stride == 1 && (m == 1 || x.row_stride == k);
  const Scratch copy(static_cast<size_t>(dense ? 0 : m * k) * sizeof(float));
  if (!dense) {
    for (int64_t i = 0; i < m; ++i) {
      for (int64_t p = 0; p < k; ++p) copy.as<float>()[i * k + p] = x.data[i * x.row_stride + p * x.column_stride];
    }
  }
  const Rows rows{dense ? x.data : copy.as<float>(), m, k};
  const int64_t step = m == 1 ? 2 * columns_at_once : columns_at_once;
  const auto body = [&](int64_t begin, int64_t end) {
    float product[most_gemv_rows * columns_at_once];
    for (int64_t j = begin; j < end; j += step) {
      const int64_t stop = std::min(j + step, end);
      (b.transposed ? dot_rows : add_rows)(kernels, rows, b, j, stop, product);
      for (int64_t i = 0; i < m; ++i) finish(product + i * (stop - j), i, j, stop, out, epilogue);
    }
  };
  if (pool) {
    pool->parallel_for(n, std::max<int64_t>(16, floats_per_task / std::max<int64_t>(k * m, 1)), body);
  } else {
    body(0, n);
  }
}

}  // namespace tenon::kernels

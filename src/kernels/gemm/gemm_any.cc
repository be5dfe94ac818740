#include "kernels/gemm/gemm_any.h"

#include <algorithm>
#include <type_traits>

#include "base/multiply_add.h"
#include "kernels/scratch.h"

namespace tenon::kernels {
namespace {

constexpr int tile_rows = 4;
template <class T>
constexpr int tile_columns = 64 / sizeof(T);

// panel[p * tile_columns + j] = b[p, column + j], zero past the last column.
template <class T>
void pack(const AnyMatrix<T>& b, int64_t column, int64_t columns, int64_t k, T* panel) {
  for (int64_t p = 0; p < k; ++p, panel += tile_columns<T>) {
    const T* src = b.data + (b.transposed ? column * b.ld + p : p * b.ld + column);
    const int64_t stride = b.transposed ? b.ld : 1;
    for (int64_t j = 0; j < columns; ++j) panel[j] = src[j * stride];
    std::fill(panel + columns, panel + tile_columns<T>, T{});
  }
}

// acc[i][j] = sum over p of a[i * row_stride + p * k_stride] * panel[p][j].
template <class T, int Rows>
void multiply(const T* a, int64_t row_stride, int64_t k_stride, const T* panel, int64_t k,
              T (&acc)[Rows][tile_columns<T>]) {
  T local[Rows][tile_columns<T>] = {};
  for (int64_t p = 0; p < k; ++p, a += k_stride, panel += tile_columns<T>) {
    for (int i = 0; i < Rows; ++i) {
      const T value = a[i * row_stride];
      for (int j = 0; j < tile_columns<T>; ++j) local[i][j] = multiply_add(value, panel[j], local[i][j]);
    }
  }
  for (int i = 0; i < Rows; ++i) std::copy(local[i], local[i] + tile_columns<T>, acc[i]);
}

template <class T>
void multiply_columns(int64_t m, int64_t k, const AnyMatrix<T>& a, const T* panel, T* c, int64_t ldc, int64_t columns) {
  const int64_t row_stride = a.transposed ? 1 : a.ld, k_stride = a.transposed ? a.ld : 1;
  T acc[tile_rows][tile_columns<T>];
  T last[1][tile_columns<T>];
  int64_t i = 0;
  for (; i + tile_rows <= m; i += tile_rows) {
    multiply<T, tile_rows>(a.data + i * row_stride, row_stride, k_stride, panel, k, acc);
    for (int r = 0; r < tile_rows; ++r) std::copy(acc[r], acc[r] + columns, c + (i + r) * ldc);
  }
  for (; i < m; ++i) {
    multiply<T, 1>(a.data + i * row_stride, row_stride, k_stride, panel, k, last);
    std::copy(last[0], last[0] + columns, c + i * ldc);
  }
}

template <class T>
void run(ThreadPool& pool, int64_t m, int64_t n, int64_t k, AnyMatrix<T> a, AnyMatrix<T> b, T* c, int64_t ldc) {
  const int64_t panels = (n + tile_columns<T> - 1) / tile_columns<T>;
  const int64_t work = std::max<int64_t>(1, m) * std::max<int64_t>(1, k) * tile_columns<T>;
  pool.parallel_for(panels, 1 + 100000 / work, [&](int64_t begin, int64_t end) {
    const Scratch panel(static_cast<size_t>(k * tile_columns<T>) * sizeof(T));
    for (int64_t i = begin; i < end; ++i) {
      const int64_t column = i * tile_columns<T>;
      const int64_t columns = std::min<int64_t>(tile_columns<T>, n - column);
      pack(b, column, columns, k, panel.as<T>());
      multiply_columns(m, k, a, panel.as<T>(), c + column, ldc, columns);
    }
  });
}

}  // namespace

template <class T>
void gemm_any(ThreadPool& pool, int64_t m, int64_t n, int64_t k, AnyMatrix<T> a, AnyMatrix<T> b, T* c, int64_t ldc) {
  if constexpr (std::is_integral_v<T>) {
    // Unsigned, because signed integers must not overflow.
    using U = std::make_unsigned_t<T>;
    run<U>(pool, m, n, k, {reinterpret_cast<const U*>(a.data), a.ld, a.transposed},
           {reinterpret_cast<const U*>(b.data), b.ld, b.transposed}, reinterpret_cast<U*>(c), ldc);
  } else {
    run<T>(pool, m, n, k, a, b, c, ldc);
  }
}

#define TENON_INSTANTIATE(T) \
  template void gemm_any<T>(ThreadPool&, int64_t, int64_t, int64_t, AnyMatrix<T>, AnyMatrix<T>, T*, int64_t);
TENON_INSTANTIATE(double)
TENON_INSTANTIATE(int32_t)
TENON_INSTANTIATE(uint32_t)
TENON_INSTANTIATE(int64_t)
TENON_INSTANTIATE(uint64_t)
#undef TENON_INSTANTIATE

}  // namespace tenon::kernels

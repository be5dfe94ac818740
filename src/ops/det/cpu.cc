#include <algorithm>
#include <cmath>
#include <cstring>
#include <type_traits>
#include <vector>

#include "base/rounding.h"
#include "kernels/simd/extreme.h"
#include "ops/dispatch.h"
#include "provider/cpu_kernels.h"

namespace tenon::ops {
namespace {

// A square matrix whose rows begin at whole vectors, as do all that is read and stored of them: of vectors that lie
// across two, each takes twice as long to store.
template <typename T>
class Matrix {
 public:
  explicit Matrix(int64_t n) : n_(n), stride_(round_up(n, lanes)), elements_(static_cast<size_t>(n * stride_)) {}

  template <typename E>
  void set(const E* x) {
    for (int64_t r = 0; r < n_; ++r)
      std::transform(x + r * n_, x + (r + 1) * n_, row(r), [](E v) { return number(v); });
  }

  // By Gaussian elimination with row exchanges, which destroys the matrix.
  double determinant() {
    double result = 1;
    for (int64_t c = 0; c < n_; ++c) {
      int64_t pivot = c;
      for (int64_t r = c + 1; r < n_; ++r) {
        if (std::fabs(row(r)[c]) > std::fabs(row(pivot)[c])) pivot = r;
      }
      if (row(pivot)[c] == 0) return 0;
      if (pivot != c) {
        std::swap_ranges(row(c), row(c) + n_, row(pivot));
        result = -result;
      }
      result *= static_cast<double>(row(c)[c]);
      eliminate(c);
    }
    return result;
  }

 private:
  using Vector = typename kernels::VectorOf<T>::Type;
  static constexpr int64_t lanes = sizeof(Vector) / sizeof(T), rows_at_once = 4;

  T* row(int64_t r) { return elements_.data() + r * stride_; }

  template <typename E>
  static T number(E value) {
    if constexpr (std::is_arithmetic_v<E>)
      return value;
    else
      return static_cast<float>(value);
  }

  // Subtracts multiples of row c from those below, so that its column is 0 there. What is in columns up to c is not
  // looked at again.
  void eliminate(int64_t c) {
    const int64_t first = (c + 1) / lanes * lanes;
    const T inverse = 1 / row(c)[c];
    int64_t r = c + 1;
    for (; r + rows_at_once <= n_; r += rows_at_once) {
      T factors[rows_at_once];
      for (int64_t k = 0; k < rows_at_once; ++k) factors[k] = row(r + k)[c] * inverse;
      subtract<rows_at_once>(row(c) + first, factors, row(r) + first, stride_, stride_ - first);
    }
    for (; r < n_; ++r) {
      const T factor = row(r)[c] * inverse;
      subtract<1>(row(c) + first, &factor, row(r) + first, stride_, stride_ - first);
    }
  }

  // Subtracts multiples of `from` from so many rows that are `stride` apart. Not inlined, so that all its addresses
  // stay in registers.
  template <int rows>
  [[gnu::noinline]] static void subtract(const T* from, const T* factors, T* to, int64_t stride, int64_t n) {
    T own[rows];
    std::copy_n(factors, rows, own);
    for (int64_t i = 0; i < n; i += lanes) {
      Vector x, y;
      std::memcpy(&x, from + i, sizeof x);
      for (int r = 0; r < rows; ++r) {
        std::memcpy(&y, to + r * stride + i, sizeof y);
        y -= own[r] * x;
        std::memcpy(to + r * stride + i, &y, sizeof y);
      }
    }
  }

  int64_t n_, stride_;
  std::vector<T> elements_;
};

void run_det(KernelRun& run) {
  const Shape& shape = run.input(0).shape();
  const int64_t n = shape[shape.rank() - 1], count = run.output(0).elements();
  dispatch<float, double, float16, bfloat16>(run.input(0).type(), [&]<typename T>() {
    const T* x = run.data<T>(0).data();
    T* y = run.output(0).mutable_data<T>().data();
    run.threads().parallel_for(count, 1 + (16 << 10) / (n * n * n + 1), [&](int64_t begin, int64_t end) {
      Matrix<std::conditional_t<std::is_same_v<T, double>, double, float>> matrix(n);
      for (int64_t i = begin; i < end; ++i) {
        matrix.set(x + i * n * n);
        if constexpr (std::is_arithmetic_v<T>)
          y[i] = static_cast<T>(matrix.determinant());
        else
          y[i] = T(static_cast<float>(matrix.determinant()));
      }
    });
  });
}

}  // namespace

void cpu_det(CpuKernels& list) { list.add_simple("Det", run_det); }

}  // namespace tenon::ops

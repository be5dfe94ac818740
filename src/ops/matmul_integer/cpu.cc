#include <algorithm>
#include <cmath>
#include <vector>

#include "kernels/gemm/gemm_any.h"
#include "ops/dispatch.h"
#include "ops/quantize/codec.h"
#include "provider/cpu_kernels.h"

namespace tenon::ops {
namespace {

// One multiplication per matrix of the broadcast batch.
struct Batch {
  int64_t m, n, k, count = 1;
  std::vector<int64_t> sizes, a_strides, b_strides;  // in matrices; 0 where broadcast

  Batch(const Shape& a, const Shape& b)
      : m(a.rank() == 1 ? 1 : a[a.rank() - 2]), n(b.rank() == 1 ? 1 : b[b.rank() - 1]), k(a[a.rank() - 1]) {
    const int a_rank = std::max(0, a.rank() - 2), b_rank = std::max(0, b.rank() - 2), rank = std::max(a_rank, b_rank);
    sizes.assign(static_cast<size_t>(rank), 1);
    a_strides = b_strides = std::vector<int64_t>(static_cast<size_t>(rank));
    auto fill = [&](const Shape& shape, int own, std::vector<int64_t>& strides) {
      int64_t stride = 1;
      for (int axis = own - 1; axis >= 0; --axis) {
        auto target = static_cast<size_t>(rank - own + axis);
        if (shape[axis] != 1) {
          sizes[target] = shape[axis];
          strides[target] = stride;
        }
        stride *= shape[axis];
      }
    };
    fill(a, a_rank, a_strides);
    fill(b, b_rank, b_strides);
    for (int64_t size : sizes) count *= size;
  }

  std::pair<int64_t, int64_t> at(int64_t i) const {
    int64_t a = 0, b = 0;
    for (size_t axis = sizes.size(); axis-- > 0;) {
      a += i % sizes[axis] * a_strides[axis];
      b += i % sizes[axis] * b_strides[axis];
      i /= sizes[axis];
    }
    return {a, b};
  }
};

// One parameter for all matrices, one for each line (row of A or column of B) of every matrix, or one for each line of
// each matrix.
struct LineParameters {
  std::vector<float> values;

  LineParameters(const Tensor& tensor, int64_t lines, int64_t all_lines, const char* name)
      : values(static_cast<size_t>(tensor.elements())) {
    if (tensor.elements() != 1 && tensor.elements() != lines && tensor.elements() != all_lines) {
      fail(ErrorCode::shape_mismatch, "{} has {} elements; it may have 1, {} or {}", name, tensor.elements(), lines,
           all_lines);
    }
    load_as_float(tensor, 0, tensor.elements(), values.data());
  }
  LineParameters() : values{0} {}
  // Line `line` of all lines, those of the matrices before included.
  float at(int64_t line) const { return values[static_cast<size_t>(line) % values.size()]; }
};

// The elements of matrices [count, rows, columns] less the zero points of their rows or columns.
template <typename T>
std::vector<T> centered(const Tensor& x, int64_t rows, int64_t columns, const LineParameters& zeros, bool by_row) {
  std::vector<T> result(static_cast<size_t>(x.elements()));
  std::vector<float> row(static_cast<size_t>(columns));
  const int64_t total = columns == 0 ? 0 : x.elements() / columns;
  for (int64_t r = 0; r < total; ++r) {
    load_as_float(x, r * columns, columns, row.data());
    const int64_t first = r / std::max<int64_t>(rows, 1) * columns;
    T* out = result.data() + r * columns;
    if (by_row || zeros.values.size() == 1) {
      const float zero = zeros.at(by_row ? r : 0);
      for (int64_t i = 0; i < columns; ++i) out[i] = static_cast<T>(row[static_cast<size_t>(i)] - zero);
    } else {
      for (int64_t i = 0; i < columns; ++i) out[i] = static_cast<T>(row[static_cast<size_t>(i)] - zeros.at(first + i));
    }
  }
  return result;
}

int64_t all_rows(const Tensor& a, int64_t k) { return k == 0 ? 0 : a.elements() / k; }

// T is int32_t, or double for elements that are floats.
template <typename T>
void multiply(KernelRun& run, const Batch& batch, size_t b_input, const LineParameters& a_zero,
              const LineParameters& b_zero, T* y) {
  const std::vector<T> a = centered<T>(run.input(0), batch.m, batch.k, a_zero, true);
  const std::vector<T> b = centered<T>(run.input(b_input), batch.k, batch.n, b_zero, false);
  for (int64_t i = 0; i < batch.count; ++i) {
    auto [ia, ib] = batch.at(i);
    kernels::gemm_any<T>(run.threads(), batch.m, batch.n, batch.k, {a.data() + ia * batch.m * batch.k, batch.k},
                         {b.data() + ib * batch.k * batch.n, batch.n}, y + i * batch.m * batch.n, batch.n);
  }
}

LineParameters row_parameters(const KernelRun& run, size_t input, const Batch& batch, const char* name) {
  return LineParameters(run.input(input), batch.m, all_rows(run.input(0), batch.k), name);
}

LineParameters column_parameters(const KernelRun& run, size_t input, size_t b_input, const Batch& batch,
                                 const char* name) {
  return LineParameters(run.input(input), batch.n, all_rows(run.input(b_input), batch.k), name);
}

void run_matmul_integer(KernelRun& run) {
  Tensor& y = run.output(0);
  if (y.elements() == 0) return;
  const Batch batch(run.input(0).shape(), run.input(1).shape());
  const LineParameters a_zero = run.has_input(2) ? row_parameters(run, 2, batch, "a_zero_point") : LineParameters();
  const LineParameters b_zero =
      run.has_input(3) ? column_parameters(run, 3, 1, batch, "b_zero_point") : LineParameters();
  multiply<int32_t>(run, batch, 1, a_zero, b_zero, y.mutable_data<int32_t>().data());
}

// Scales the products and stores them in the type of Y.
template <typename T>
void requantize(KernelRun& run, const Batch& batch, const std::vector<T>& products) {
  const LineParameters a_scale = row_parameters(run, 1, batch, "a_scale"),
                       b_scale = column_parameters(run, 4, 3, batch, "b_scale");
  const LineParameters y_scale(run.input(6), batch.m, batch.count * batch.m, "y_scale"),
      y_zero(run.input(7), batch.m, batch.count * batch.m, "y_zero_point");
  Tensor& y = run.output(0);
  std::vector<float> row(static_cast<size_t>(batch.n));
  for (int64_t r = 0; r < batch.count * batch.m; ++r) {
    auto [ia, ib] = batch.at(r / batch.m);
    const double left =
        static_cast<double>(a_scale.at(ia * batch.m + r % batch.m)) / static_cast<double>(y_scale.at(r));
    for (int64_t i = 0; i < batch.n; ++i) {
      const double value = static_cast<double>(products[static_cast<size_t>(r * batch.n + i)]) * left *
                           static_cast<double>(b_scale.at(ib * batch.n + i));
      row[static_cast<size_t>(i)] =
          static_cast<float>(is_integer(y.type()) ? std::nearbyint(value) : value) + y_zero.at(r);
    }
    store_from_float(row.data(), y, r * batch.n, batch.n);
  }
}

void run_qlinear_matmul(KernelRun& run) {
  const int64_t elements = run.output(0).elements();
  if (elements == 0) return;
  const Batch batch(run.input(0).shape(), run.input(3).shape());
  const LineParameters a_zero = row_parameters(run, 2, batch, "a_zero_point"),
                       b_zero = column_parameters(run, 5, 3, batch, "b_zero_point");
  auto compute = [&]<typename T>() {
    std::vector<T> products(static_cast<size_t>(elements));
    multiply<T>(run, batch, 3, a_zero, b_zero, products.data());
    requantize(run, batch, products);
  };
  if (is_integer(run.input(0).type()) && is_integer(run.input(3).type()))
    compute.template operator()<int32_t>();
  else
    compute.template operator()<double>();
}

}  // namespace

void cpu_matmul_integer(CpuKernels& list) {
  list.add_simple("MatMulInteger", run_matmul_integer);
  list.add_simple("QLinearMatMul", run_qlinear_matmul);
}

}  // namespace tenon::ops

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <tuple>
#include <vector>

#include "kernels/gemm/gemm_any.h"
#include "kernels/gemm_int8/gemm_int8.h"
#include "kernels/quantize/requantize.h"
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
    const int64_t count = tensor.elements();
    if (count == 0 || (count != 1 && count != lines && count != all_lines)) {
      fail(ErrorCode::shape_mismatch, "{} has {} elements; it may have 1, {} or {}", name, count, lines, all_lines);
    }
    load_as_float(tensor, 0, tensor.elements(), values.data());
  }
  LineParameters() : values{0} {}
  // Line `line` of all lines, those of the matrices before included.
  float at(int64_t line) const { return values[static_cast<size_t>(line) % values.size()]; }
  std::vector<int32_t> whole() const { return {values.begin(), values.end()}; }
};

// The elements of matrices [count, rows, columns] less the zero points of their rows or columns.
std::vector<double> centered(const Tensor& x, int64_t rows, int64_t columns, const LineParameters& zeros, bool by_row) {
  std::vector<double> result(static_cast<size_t>(x.elements()));
  std::vector<float> row(static_cast<size_t>(columns));
  const int64_t total = columns == 0 ? 0 : x.elements() / columns;
  for (int64_t r = 0; r < total; ++r) {
    load_as_float(x, r * columns, columns, row.data());
    const int64_t first = r / std::max<int64_t>(rows, 1) * columns;
    double* out = result.data() + r * columns;
    if (by_row || zeros.values.size() == 1) {
      const float zero = zeros.at(by_row ? r : 0);
      for (int64_t i = 0; i < columns; ++i) out[i] = static_cast<double>(row[static_cast<size_t>(i)] - zero);
    } else {
      for (int64_t i = 0; i < columns; ++i)
        out[i] = static_cast<double>(row[static_cast<size_t>(i)] - zeros.at(first + i));
    }
  }
  return result;
}

int64_t all_rows(const Tensor& a, int64_t k) { return k == 0 ? 0 : a.elements() / k; }

bool is_byte(ElementType type) { return type == ElementType::int8 || type == ElementType::uint8; }

kernels::ByteMatrix byte_matrix(const Tensor& x, int64_t first, int64_t columns) {
  return {static_cast<const uint8_t*>(x.raw()) + first, x.type() == ElementType::int8, columns};
}

// Products of bytes; a constant right side is packed ahead.
class ByteProduct {
 public:
  ByteProduct(const NodeInfo& info, size_t b_input, size_t b_zero_input) : b_input_(b_input) {
    const Tensor* b = info.constant(b_input);
    if (!b || !is_byte(b->type()) || b->elements() == 0) return;
    if (info.node().input(b_zero_input) && !info.constant(b_zero_input)) return;
    const int64_t n = b->rank() == 1 ? 1 : b->dim(b->rank() - 1), k = b->dim(std::max(0, b->rank() - 2));
    const std::vector<int32_t> zeros =
        info.constant(b_zero_input)
            ? LineParameters(*info.constant(b_zero_input), n, b->elements() / k, "b_zero_point").whole()
            : std::vector<int32_t>{0};
    packed_ = info.packed<Packed>(
        {b_input}, fmt::format("zero points {}", fmt::join(zeros, " ")), [&](PackedStorage& storage) {
          Packed packed;
          for (int64_t i = 0; i < b->elements() / (k * n); ++i) {
            packed.matrices.emplace_back(info.threads(), kernels::GemmSide::right, n, k, byte_matrix(*b, i * k * n, n),
                                         of_matrix(zeros, i, n), kernels::int8_kernels(), storage);
          }
          return packed;
        });
  }

  void multiply(KernelRun& run, const Batch& batch, const LineParameters& a_zero, const LineParameters& b_zero,
                int32_t* y) const {
    const Tensor &a = run.input(0), &b = run.input(b_input_);
    const auto [m, n, k] = std::tuple(batch.m, batch.n, batch.k);
    const std::vector<int32_t> a_zeros = a_zero.whole(), b_zeros = b_zero.whole();
    // Many matrices with one on the right are one tall matrix.
    const bool tall = batch.count > 1 && b.elements() == k * n && a.elements() == batch.count * m * k &&
                      (a_zeros.size() == 1 || std::ssize(a_zeros) == batch.count * m);
    const int64_t rows = tall ? batch.count * m : m;
    for (int64_t i = 0; i < (tall ? 1 : batch.count); ++i) {
      auto [ia, ib] = batch.at(i);
      const auto left = byte_matrix(a, ia * m * k, k);
      const auto left_zeros = of_matrix(a_zeros, ia, rows);
      int32_t* to = y + i * m * n;
      if (!packed_) {
        kernels::gemm_int8(run.threads(), rows, n, k, left, left_zeros, byte_matrix(b, ib * k * n, n),
                           of_matrix(b_zeros, ib, n), to, n);
      } else {
        kernels::gemm_int8(run.threads(), rows, left, left_zeros, packed_->matrices[static_cast<size_t>(ib)], to, n);
      }
    }
  }

 private:
  struct Packed {
    std::vector<kernels::PackedBytes> matrices;  // of B

    size_t bytes() const {
      size_t total = 0;
      for (const kernels::PackedBytes& matrix : matrices) total += matrix.panels().bytes();
      return total;
    }
  };

  // The zero points of one matrix with this many lines.
  static kernels::ByteZeroPoints of_matrix(const std::vector<int32_t>& zeros, int64_t matrix, int64_t lines) {
    const int64_t first = std::ssize(zeros) > lines ? matrix * lines : 0;
    return {zeros.data() + first, zeros.size() > 1};
  }

  size_t b_input_;
  std::shared_ptr<const Packed> packed_;
};

// Products of elements that are floats.
void multiply_floats(KernelRun& run, const Batch& batch, size_t b_input, const LineParameters& a_zero,
                     const LineParameters& b_zero, double* y) {
  const std::vector<double> a = centered(run.input(0), batch.m, batch.k, a_zero, true);
  const std::vector<double> b = centered(run.input(b_input), batch.k, batch.n, b_zero, false);
  for (int64_t i = 0; i < batch.count; ++i) {
    auto [ia, ib] = batch.at(i);
    kernels::gemm_any<double>(run.threads(), batch.m, batch.n, batch.k, {a.data() + ia * batch.m * batch.k, batch.k},
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

class MatMulInteger final : public Kernel {
 public:
  explicit MatMulInteger(const NodeInfo& info) : product_(info, 1, 3) {}

  void run(KernelRun& run) const override {
    Tensor& y = run.output(0);
    if (y.elements() == 0) return;
    const Batch batch(run.input(0).shape(), run.input(1).shape());
    const LineParameters a_zero = run.has_input(2) ? row_parameters(run, 2, batch, "a_zero_point") : LineParameters();
    const LineParameters b_zero =
        run.has_input(3) ? column_parameters(run, 3, 1, batch, "b_zero_point") : LineParameters();
    product_.multiply(run, batch, a_zero, b_zero, y.mutable_data<int32_t>().data());
  }

 private:
  ByteProduct product_;
};

// How products become elements of Y: the scales of A's rows, B's columns and Y's rows, and Y's zero points.
struct Rescaling {
  LineParameters a_scale, b_scale, y_scale, y_zero;

  Rescaling(const KernelRun& run, const Batch& batch)
      : a_scale(row_parameters(run, 1, batch, "a_scale")),
        b_scale(column_parameters(run, 4, 3, batch, "b_scale")),
        y_scale(run.input(6), batch.m, batch.count * batch.m, "y_scale"),
        y_zero(run.input(7), batch.m, batch.count * batch.m, "y_zero_point") {}

  // The scales of row `row` of all rows of Y.
  template <typename T>
  void scales_of(const Batch& batch, int64_t row, std::vector<T>& scales) const {
    const auto [a, b] = batch.at(row / batch.m);
    const T left = static_cast<T>(a_scale.at(a * batch.m + row % batch.m)), right = static_cast<T>(y_scale.at(row));
    scales.resize(static_cast<size_t>(batch.n));
    for (int64_t i = 0; i < batch.n; ++i)
      scales[static_cast<size_t>(i)] = left * static_cast<T>(b_scale.at(b * batch.n + i)) / right;
  }
  // Whether row `row` has other scales than the one before.
  bool changes_at(const Batch& batch, int64_t row) const {
    return row % batch.m == 0 || a_scale.values.size() > 1 || y_scale.values.size() > 1;
  }
};

// Calls body(row, scales) for each row of Y.
template <typename T, typename Body>
void each_scaled_row(KernelRun& run, const Batch& batch, const Rescaling& rescaling, Body body) {
  run.threads().parallel_for(batch.count * batch.m, 1 + 4096 / batch.n, [&](int64_t begin, int64_t end) {
    std::vector<T> scales;
    for (int64_t row = begin; row < end; ++row) {
      if (row == begin || rescaling.changes_at(batch, row)) rescaling.scales_of(batch, row, scales);
      body(row, scales);
    }
  });
}

void store_bytes(KernelRun& run, const Batch& batch, const int32_t* products) {
  const Rescaling rescaling(run, batch);
  Tensor& y = run.output(0);
  dispatch<int8_t, uint8_t>(y.type(), [&]<typename T>() {
    T* to = y.mutable_data<T>().data();
    each_scaled_row<float>(run, batch, rescaling, [&](int64_t row, const std::vector<float>& scales) {
      kernels::requantize(products + row * batch.n, 0, {scales.data(), 1}, static_cast<T>(rescaling.y_zero.at(row)),
                          to + row * batch.n, batch.n);
    });
  });
}

// Of any type that quantization knows.
void store_any(KernelRun& run, const Batch& batch, const double* products) {
  const Rescaling rescaling(run, batch);
  Tensor& y = run.output(0);
  const bool whole = is_integer(y.type());
  each_scaled_row<double>(run, batch, rescaling, [&](int64_t row, const std::vector<double>& scales) {
    std::vector<float> values(scales.size());
    for (size_t i = 0; i < scales.size(); ++i) {
      const double scaled = products[row * batch.n + static_cast<int64_t>(i)] * scales[i];
      values[i] = static_cast<float>(whole ? std::nearbyint(scaled) : scaled) + rescaling.y_zero.at(row);
    }
    store_from_float(values.data(), y, row * batch.n, batch.n);
  });
}

class QLinearMatMul final : public Kernel {
 public:
  explicit QLinearMatMul(const NodeInfo& info) : product_(info, 3, 5) {}

  void run(KernelRun& run) const override {
    const int64_t elements = run.output(0).elements();
    if (elements == 0) return;
    const Batch batch(run.input(0).shape(), run.input(3).shape());
    const LineParameters a_zero = row_parameters(run, 2, batch, "a_zero_point"),
                         b_zero = column_parameters(run, 5, 3, batch, "b_zero_point");
    if (is_byte(run.input(0).type()) && is_byte(run.input(3).type())) {
      Tensor sums(ElementType::int32, Shape({elements}), run.allocator());
      int32_t* products = sums.mutable_data<int32_t>().data();
      product_.multiply(run, batch, a_zero, b_zero, products);
      if (is_byte(run.output(0).type())) return store_bytes(run, batch, products);
      store_any(run, batch, std::vector<double>(products, products + elements).data());
    } else {
      std::vector<double> products(static_cast<size_t>(elements));
      multiply_floats(run, batch, 3, a_zero, b_zero, products.data());
      store_any(run, batch, products.data());
    }
  }

 private:
  ByteProduct product_;
};

}  // namespace

void cpu_matmul_integer(CpuKernels& list) {
  list.add("MatMulInteger", [](const NodeInfo& info) { return std::make_unique<MatMulInteger>(info); });
  list.add("QLinearMatMul", [](const NodeInfo& info) { return std::make_unique<QLinearMatMul>(info); });
}

}  // namespace tenon::ops

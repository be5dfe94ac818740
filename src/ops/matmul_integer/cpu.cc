#include <cmath>
#include <iterator>
#include <optional>
#include <type_traits>
#include <vector>

#include "base/fail.h"
#include "kernels/gemm_any/gemm_any.h"
#include "kernels/quantize/requantize.h"
#include "ops/cpu_support/byte_product.h"
#include "ops/dispatch.h"
#include "ops/operator.h"
#include "ops/quantize/codec.h"

namespace tenon::ops {
namespace {

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

bool is_byte(ElementType type) { return type == ElementType::int8 || type == ElementType::uint8; }

// Products of elements that are floats.
void multiply_floats(KernelRun& run, const MatrixBatch& batch, size_t b_input, const LineParameters& a_zero,
                     const LineParameters& b_zero, double* y) {
  const std::vector<double> a = centered(run.input(0), batch.m, batch.k, a_zero, true);
  const std::vector<double> b = centered(run.input(b_input), batch.k, batch.n, b_zero, false);
  for (int64_t i = 0; i < batch.count; ++i) {
    auto [ia, ib] = batch.at(i);
    kernels::gemm_any<double>(run.threads(), batch.m, batch.n, batch.k, {a.data() + ia * batch.m * batch.k, batch.k},
                              {b.data() + ib * batch.k * batch.n, batch.n}, y + i * batch.m * batch.n, batch.n);
  }
}

class MatMulInteger final : public Kernel {
 public:
  explicit MatMulInteger(const NodeInfo& info) : product_(info, 1, 3) {}

  void run(KernelRun& run) const override {
    Tensor& y = run.output(0);
    if (y.elements() == 0) return;
    const MatrixBatch batch(run.input(0).shape(), run.input(1).shape());
    product_.multiply(run, batch, LineParameters::of_rows(run, 2, batch, "a_zero_point"),
                      LineParameters::of_columns(run, 3, 1, batch, "b_zero_point"), nullptr,
                      kernels::stored_sums(y.mutable_data<int32_t>().data(), batch.n));
  }

 private:
  ByteProduct product_;
};

// How products become elements of Y: the scales of A's rows, B's columns and Y's rows, and Y's zero points.
struct Rescaling {
  LineParameters a_scale, b_scale, y_scale, y_zero;

  Rescaling(const KernelRun& run, const MatrixBatch& batch)
      : a_scale(LineParameters::of_rows(run, 1, batch, "a_scale")),
        b_scale(LineParameters::of_columns(run, 4, 3, batch, "b_scale")),
        y_scale(run.input(6), batch.m, batch.count * batch.m, "y_scale"),
        y_zero(run.input(7), batch.m, batch.count * batch.m, "y_zero_point") {}

  // The scales of row `row` of all rows of Y.
  template <typename T>
  void scales_of(const MatrixBatch& batch, int64_t row, std::vector<T>& scales) const {
    const auto [a, b] = batch.at(row / batch.m);
    const T left = static_cast<T>(a_scale.at(a * batch.m + row % batch.m)), right = static_cast<T>(y_scale.at(row));
    scales.resize(static_cast<size_t>(batch.n));
    for (int64_t i = 0; i < batch.n; ++i)
      scales[static_cast<size_t>(i)] = left * static_cast<T>(b_scale.at(b * batch.n + i)) / right;
  }
  // Whether all rows have the same scales and zero point.
  bool is_whole(const MatrixBatch& batch) const {
    return a_scale.values.size() == 1 && y_scale.values.size() == 1 && y_zero.values.size() == 1 &&
           std::ssize(b_scale.values) <= batch.n;
  }
};

// Codes for each column that are added to those of Y, as QLinearAdd does it.
struct ColumnCodes {
  std::vector<float> addends;  // empty: none are
  float factor = 1;
  float zero = 0;

  template <typename T>
  static ColumnCodes of(const KernelRun& run, const Rescaling& rescaling, const MatrixBatch& batch) {
    if (!run.has_input(9)) return {};
    const auto parameter = [&](size_t i) { return LineParameters(run.input(i), 1, 1, "a parameter of the sum").at(0); };
    const float scale = parameter(10), zero = parameter(11), sum_scale = parameter(12);
    ColumnCodes result{{}, rescaling.y_scale.at(0) / sum_scale, parameter(13)};
    for (T code : run.data<T>(9)) result.addends.push_back((static_cast<float>(code) - zero) * (scale / sum_scale));
    if (std::ssize(result.addends) != batch.n)
      fail(ErrorCode::shape_mismatch, "the addend has {} elements; it must have {}", result.addends.size(), batch.n);
    return result;
  }
};

// Turns blocks of products of bytes into bytes of Y.
template <typename T>
class CodesOfBlocks {
 public:
  CodesOfBlocks(const MatrixBatch& batch, const Rescaling& rescaling, const ColumnCodes& added, T* y)
      : batch_(batch), rescaling_(rescaling), added_(added), y_(y), is_whole_(rescaling.is_whole(batch)) {
    if (is_whole_) rescaling.scales_of(batch, 0, scales_);
  }

  // Where all rows are alike.
  std::optional<kernels::CodesOfSums> simple() const {
    if (!is_whole_) return {};
    const auto zero = static_cast<int32_t>(static_cast<T>(rescaling_.y_zero.at(0)));
    kernels::CodesOfSums codes{scales_.data(), std::is_signed_v<T>, zero, reinterpret_cast<uint8_t*>(y_), batch_.n};
    if (added_.addends.empty()) return codes;
    codes.added = {added_.addends.data(), added_.factor, zero};
    codes.zero = static_cast<int32_t>(static_cast<T>(added_.zero));
    return codes;
  }

  void operator()(const kernels::SumsBlock& block) const {
    T* to = y_ + block.row * batch_.n + block.column;
    std::vector<float> scales;
    for (int64_t i = 0; i < block.rows; ++i) {
      rescaling_.scales_of(batch_, block.row + i, scales);
      kernels::requantize(block.sums + i * block.ld, 0, {scales.data() + block.column, 1},
                          static_cast<T>(rescaling_.y_zero.at(block.row + i)), to + i * batch_.n, block.columns);
    }
  }

 private:
  const MatrixBatch& batch_;
  const Rescaling& rescaling_;
  const ColumnCodes& added_;
  T* y_;
  bool is_whole_;
  std::vector<float> scales_;
};

// Of any type that quantization knows.
void store_any(KernelRun& run, const MatrixBatch& batch, const double* products) {
  const Rescaling rescaling(run, batch);
  Tensor& y = run.output(0);
  const bool whole = is_integer(y.type());
  run.threads().parallel_for(batch.count * batch.m, 1 + 4096 / batch.n, [&](int64_t begin, int64_t end) {
    std::vector<double> scales;
    std::vector<float> values(static_cast<size_t>(batch.n));
    for (int64_t row = begin; row < end; ++row) {
      rescaling.scales_of(batch, row, scales);
      for (size_t i = 0; i < scales.size(); ++i) {
        const double scaled = products[row * batch.n + static_cast<int64_t>(i)] * scales[i];
        values[i] = static_cast<float>(whole ? std::nearbyint(scaled) : scaled) + rescaling.y_zero.at(row);
      }
      store_from_float(values.data(), y, row * batch.n, batch.n);
    }
  });
}

class QLinearMatMul final : public Kernel {
  // Sums of so many products of bytes, and a bias of up to 2^30, do not overflow.
  static constexpr int64_t most_products = (1 << 30) / (255 * 255);

 public:
  explicit QLinearMatMul(const NodeInfo& info) : product_(info, 3, 5) {}

  void run(KernelRun& run) const override {
    Tensor& y = run.output(0);
    if (y.elements() == 0) return;
    const MatrixBatch batch(run.input(0).shape(), run.input(3).shape());
    const LineParameters a_zero = LineParameters::of_rows(run, 2, batch, "a_zero_point"),
                         b_zero = LineParameters::of_columns(run, 5, 3, batch, "b_zero_point");
    if (!is_byte(run.input(0).type()) || !is_byte(run.input(3).type()) ||
        (batch.k > most_products && !product_.is_packed())) {
      std::vector<double> products(static_cast<size_t>(y.elements()));
      multiply_floats(run, batch, 3, a_zero, b_zero, products.data());
      for (size_t i = 0; run.has_input(8) && i < products.size(); ++i)
        products[i] += run.data<int32_t>(8)[i % static_cast<size_t>(batch.n)];
      return store_any(run, batch, products.data());
    }
    if (!is_byte(y.type())) {
      std::vector<int32_t> sums(static_cast<size_t>(y.elements()));
      product_.multiply(run, batch, a_zero, b_zero, nullptr, kernels::stored_sums(sums.data(), batch.n));
      return store_any(run, batch, std::vector<double>(sums.begin(), sums.end()).data());
    }
    const Rescaling rescaling(run, batch);
    dispatch<int8_t, uint8_t>(y.type(), [&]<typename T>() {
      const ColumnCodes added = ColumnCodes::of<T>(run, rescaling, batch);
      const CodesOfBlocks<T> finish(batch, rescaling, added, y.mutable_data<T>().data());
      const int32_t* bias = run.has_input(8) ? run.data<int32_t>(8).data() : nullptr;
      if (const auto simple = finish.simple())
        product_.multiply(run, batch, a_zero, b_zero, bias, *simple);
      else
        product_.multiply(run, batch, a_zero, b_zero, bias, finish);
    });
  }

 private:
  ByteProduct product_;
};

}  // namespace

void cpu_matmul_integer(CpuKernels& list) {
  list.add("MatMulInteger", [](const NodeInfo& info) { return std::make_unique<MatMulInteger>(info); });
  list.add("QLinearMatMul", [](const NodeInfo& info) { return std::make_unique<QLinearMatMul>(info); });
  list.add(
      "QLinearMatMul", [](const NodeInfo& info) { return std::make_unique<QLinearMatMul>(info); }, nullptr,
      tenon_domain);
}

}  // namespace tenon::ops

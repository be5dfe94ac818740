#include "tools/quantize/blocks.h"

#include <algorithm>
#include <cmath>

#include "base/fail.h"

namespace tenon::tools {
namespace {

// The upper triangle U with U^T U = H^-1, of the sums of products with a little added to the diagonal.
class InverseRoot {
 public:
  explicit InverseRoot(const ChannelProducts& products) : n_(products.channels), a_(static_cast<size_t>(n_ * n_)) {
    double trace = 0;
    for (int64_t i = 0; i < n_; ++i) trace += static_cast<double>(products.sums[static_cast<size_t>(i * n_ + i)]);
    const double damping = 0.01 * trace / static_cast<double>(n_) + 1e-12;
    for (int64_t i = 0; i < n_; ++i) {
      for (int64_t j = 0; j < n_; ++j)
        at(i, j) = static_cast<double>(products.sums[static_cast<size_t>(i * n_ + j)]) + (i == j ? damping : 0);
    }
    // H = L L^T, then H^-1 = L^-T L^-1, then its own factor, transposed.
    factor();
    invert_triangle();
    multiply();
    factor();
  }

  // Element (row, column) of U, column >= row.
  double operator()(int64_t row, int64_t column) const { return a_[static_cast<size_t>(column * n_ + row)]; }

 private:
  double& at(int64_t row, int64_t column) { return a_[static_cast<size_t>(row * n_ + column)]; }

  // The lower triangle L of what is L L^T, in place.
  void factor() {
    for (int64_t j = 0; j < n_; ++j) {
      double pivot = at(j, j);
      for (int64_t k = 0; k < j; ++k) pivot -= at(j, k) * at(j, k);
      pivot = std::sqrt(std::max(pivot, 1e-20));
      at(j, j) = pivot;
      for (int64_t i = j + 1; i < n_; ++i) {
        double sum = at(i, j);
        for (int64_t k = 0; k < j; ++k) sum -= at(i, k) * at(j, k);
        at(i, j) = sum / pivot;
      }
    }
  }

  // Row after row, each a sum of those before.
  void invert_triangle() {
    std::vector<double> row(static_cast<size_t>(n_));
    for (int64_t i = 0; i < n_; ++i) {
      std::ranges::fill(row, 0.0);
      for (int64_t k = 0; k < i; ++k) {
        const double factor = at(i, k);
        for (int64_t j = 0; j <= k; ++j) row[static_cast<size_t>(j)] -= factor * at(k, j);
      }
      const double pivot = at(i, i);
      for (int64_t j = 0; j < i; ++j) at(i, j) = row[static_cast<size_t>(j)] / pivot;
      at(i, i) = 1 / pivot;
    }
  }

  // The inverse of H: L^-T L^-1 from L^-1.
  void multiply() {
    std::vector<double> inverse(a_.size());
    for (int64_t k = 0; k < n_; ++k) {
      for (int64_t i = 0; i <= k; ++i) {
        const double factor = at(k, i);
        for (int64_t j = 0; j <= i; ++j) inverse[static_cast<size_t>(i * n_ + j)] += factor * at(k, j);
      }
    }
    for (int64_t i = 0; i < n_; ++i) {
      for (int64_t j = 0; j < i; ++j)
        inverse[static_cast<size_t>(j * n_ + i)] = inverse[static_cast<size_t>(i * n_ + j)];
    }
    a_ = std::move(inverse);
  }

  int64_t n_;
  std::vector<double> a_;
};

// What codes of a block of an output mean: the range of its numbers.
CodeMeaning meaning_of_block(const std::vector<float>& matrix, const BlockedCodes& shape, int64_t block, int64_t output,
                             bool symmetric) {
  Range range;
  const int64_t end = std::min(shape.inputs, (block + 1) * shape.block);
  for (int64_t i = block * shape.block; i < end; ++i) {
    const auto number = static_cast<double>(matrix[static_cast<size_t>(i * shape.outputs + output)]);
    range.low = std::min(range.low, number);
    range.high = std::max(range.high, number);
  }
  if (!symmetric) return meaning_of(range, shape.type, false);
  // The number of largest magnitude becomes the lowest code, of which there is one more than of the highest.
  const CodeLimits limits = code_limits(shape.type);
  const int64_t middle = (limits.low + limits.high + 1) / 2;
  const double largest = -range.low > range.high ? range.low : range.high;
  if (largest == 0) return {shape.type, 1, middle};
  return {shape.type, static_cast<float>(largest / static_cast<double>(limits.low - middle)), middle};
}

}  // namespace

BlockedCodes code_blocks(std::vector<float> matrix, int64_t inputs, int64_t outputs, ElementType type, bool symmetric,
                         int64_t block, const ChannelProducts* products) {
  BlockedCodes result{inputs, outputs, block > 0 ? block : inputs, 0, {}, {}, {}, type};
  result.blocks = (inputs + result.block - 1) / result.block;
  result.codes.resize(matrix.size());
  result.scales.resize(static_cast<size_t>(result.blocks * outputs));
  result.zeros.resize(result.scales.size());
  const CodeLimits limits = code_limits(type);
  std::optional<InverseRoot> root;
  if (products && products->channels == inputs) root.emplace(*products);
  std::vector<double> errors(static_cast<size_t>(outputs));
  for (int64_t i = 0; i < inputs; ++i) {
    const int64_t b = i / result.block;
    if (i % result.block == 0) {
      for (int64_t o = 0; o < outputs; ++o) {
        const CodeMeaning meaning = meaning_of_block(matrix, result, b, o, symmetric);
        result.scales[static_cast<size_t>(b * outputs + o)] = meaning.scale;
        result.zeros[static_cast<size_t>(b * outputs + o)] = static_cast<int16_t>(meaning.zero);
      }
    }
    for (int64_t o = 0; o < outputs; ++o) {
      const auto at = static_cast<size_t>(i * outputs + o), in_block = static_cast<size_t>(b * outputs + o);
      const float scale = result.scales[in_block];
      const auto zero = static_cast<float>(result.zeros[in_block]);
      const float code = std::clamp(std::nearbyint(matrix[at] / scale) + zero, static_cast<float>(limits.low),
                                    static_cast<float>(limits.high));
      result.codes[at] = static_cast<int16_t>(code);
      errors[static_cast<size_t>(o)] = static_cast<double>(matrix[at]) - static_cast<double>((code - zero) * scale);
    }
    if (!root) continue;
    const double own = (*root)(i, i);
    for (int64_t next = i + 1; next < inputs; ++next) {
      const double share = (*root)(i, next) / own;
      float* row = &matrix[static_cast<size_t>(next * outputs)];
      for (int64_t o = 0; o < outputs; ++o) row[o] -= static_cast<float>(errors[static_cast<size_t>(o)] * share);
    }
  }
  return result;
}

}  // namespace tenon::tools

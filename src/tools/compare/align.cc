#include "tools/compare/align.h"

#include <algorithm>
#include <cmath>

#include "tensor/element_value.h"

namespace tenon::tools {
namespace {

// How well two tensors fit: not at all, by what they are, or by what they hold too.
enum Fit : int { none = 0, by_kind = 1, by_content = 4 };

bool is_near(double a, double b, double scale) { return std::fabs(a - b) <= 0.02 * scale; }

Fit fit(const Fingerprint& a, const Fingerprint& b) {
  if (a.type != b.type || !(a.shape == b.shape)) return none;
  const double scale = std::max({a.deviation, b.deviation, 1e-30});
  const double span = std::max({a.most - a.least, b.most - b.least, 1e-30});
  const bool alike = is_near(a.mean, b.mean, scale) && is_near(a.deviation, b.deviation, scale) &&
                     is_near(a.least, b.least, span) && is_near(a.most, b.most, span);
  return alike ? by_content : a.op_type == b.op_type ? by_kind : none;
}

// Of longer lists the rest is left alone: it would take too long.
constexpr size_t most = 2000;

}  // namespace

Fingerprint fingerprint(const Tensor& tensor, std::string op_type) {
  Fingerprint result{tensor.type(), tensor.shape(), std::move(op_type)};
  const int64_t count = tensor.elements();
  double sum = 0, squares = 0;
  result.least = count > 0 ? INFINITY : 0;
  result.most = -result.least;
  for (int64_t i = 0; i < count; ++i) {
    const double number = element_as_double(tensor, i);
    if (!std::isfinite(number)) continue;
    sum += number;
    squares += number * number;
    result.least = std::min(result.least, number);
    result.most = std::max(result.most, number);
  }
  result.mean = count > 0 ? sum / static_cast<double>(count) : 0;
  const double variance = count > 0 ? squares / static_cast<double>(count) - result.mean * result.mean : 0;
  result.deviation = std::sqrt(std::max(0.0, variance));
  return result;
}

std::vector<std::pair<size_t, size_t>> align(const std::vector<Fingerprint>& a, const std::vector<Fingerprint>& b) {
  const size_t rows = std::min(a.size(), most), columns = std::min(b.size(), most);
  // The best sum of fits of what comes from (i, j) on.
  std::vector<std::vector<int>> best(rows + 1, std::vector<int>(columns + 1, 0));
  for (size_t i = rows; i-- > 0;) {
    for (size_t j = columns; j-- > 0;) {
      const int fits = fit(a[i], b[j]);
      best[i][j] = std::max(best[i + 1][j], best[i][j + 1]);
      if (fits != none) best[i][j] = std::max(best[i][j], best[i + 1][j + 1] + fits);
    }
  }
  std::vector<std::pair<size_t, size_t>> pairs;
  for (size_t i = 0, j = 0; i < rows && j < columns;) {
    const int fits = fit(a[i], b[j]);
    if (fits != none && best[i][j] == best[i + 1][j + 1] + fits)
      pairs.emplace_back(i++, j++);
    else if (best[i][j] == best[i + 1][j])
      ++i;
    else
      ++j;
  }
  return pairs;
}

}  // namespace tenon::tools

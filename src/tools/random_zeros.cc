#include "tools/random_zeros.h"

#include <cmath>
#include <cstring>

#include "base/fail.h"
#include "tensor/element_value.h"

namespace tenon::tools {
namespace {

// Clears the elements of `b` that are zero in `a`; returns how many these are.
int64_t clear_where_zero(const Tensor& a, Tensor& b) {
  const auto size = static_cast<size_t>(bits_of(a.type()) / 8);
  int64_t zeros = 0;
  for (int64_t i = 0; i < a.elements(); ++i) {
    if (element_as_double(a, i) != 0) continue;
    std::memset(static_cast<char*>(b.mutable_raw()) + static_cast<size_t>(i) * size, 0, size);
    ++zeros;
  }
  return zeros;
}

}  // namespace

std::string difference_but_for_zeros(const Value& actual, const Value& expected, const Tolerance& tolerance) {
  const bool comparable = actual.is_tensor() && expected.is_tensor() &&
                          actual.tensor().type() == expected.tensor().type() &&
                          actual.tensor().shape() == expected.tensor().shape();
  if (!comparable) return difference(actual, expected, tolerance);
  if (actual.tensor().type() == ElementType::string || bits_of(actual.tensor().type()) < 8)
    fail(ErrorCode::unsupported, "elements of type {} cannot be zero at random", name_of(actual.tensor().type()));
  Tensor a = actual.tensor().clone(), e = expected.tensor().clone();
  const auto n = static_cast<double>(a.elements());
  if (n == 0) return "";
  const double zeros = static_cast<double>(clear_where_zero(actual.tensor(), e)) / n;
  const double wanted = static_cast<double>(clear_where_zero(expected.tensor(), a)) / n;
  const double share = (zeros + wanted) / 2, error = std::sqrt(2 * share * (1 - share) / n);
  if (std::abs(zeros - wanted) > 5 * error)
    return fmt::format("{:.1f} % of the elements are 0, {:.1f} % are expected", 100 * zeros, 100 * wanted);
  return difference(a, e, tolerance);
}

}  // namespace tenon::tools

#include "tools/random_zeros.h"

#include <cmath>

#include "base/fail.h"
#include "tensor/element_value.h"

namespace tenon::tools {

RandomZeros::RandomZeros(const Tensor& input, const Nonzero& nonzero, const Value& expected, const Tolerance& tolerance)
    : expected_(expected), tolerance_(tolerance) {
  if (!expected.is_tensor() || !(expected.tensor().shape() == input.shape()))
    fail(ErrorCode::invalid_value, "an output with random zeros must have the shape of the first input, {}; it is {}",
         input.shape().to_string(), expected.describe());
  using Probability = Nonzero::Probability;
  const bool scales = nonzero.probability == Probability::given && expected.tensor().type() != ElementType::boolean;
  for (int64_t i = 0; i < input.elements(); ++i) {
    const double x = element_as_double(input, i);
    double p = nonzero.given;
    if (nonzero.probability != Probability::given) p = nonzero.probability == Probability::input ? x : 1 - x;
    if (!(p >= 0 && p <= 1)) fail(ErrorCode::invalid_value, "{} is no probability", p);
    values_.push_back(scales && p > 0 ? x / p : 1);
    probabilities_.push_back(values_.back() == 0 ? 0 : p);
  }
  counts_.resize(values_.size());
}

std::string RandomZeros::add(const Value& drawn) {
  const Tensor& expected = expected_.tensor();
  if (!drawn.is_tensor() || drawn.tensor().type() != expected.type() || !(drawn.tensor().shape() == expected.shape()))
    return difference(drawn, expected_, tolerance_);
  for (size_t i = 0; i < values_.size(); ++i) {
    const double element = element_as_double(drawn.tensor(), static_cast<int64_t>(i));
    if (element == 0) continue;
    if (!(std::fabs(element - values_[i]) <= tolerance_.absolute + tolerance_.relative * std::fabs(values_[i])))
      return fmt::format("element {} is {}; it may be 0 or {}", i, element, values_[i]);
    ++counts_[i];
  }
  ++draws_;
  return "";
}

std::string RandomZeros::problem() const {
  const auto n = static_cast<double>(draws_);
  for (size_t i = 0; i < counts_.size(); ++i) {
    const double p = probabilities_[i], share = static_cast<double>(counts_[i]) / n;
    if (std::fabs(share - p) <= 6 * std::sqrt(p * (1 - p) / n) + 10 / n) continue;
    return fmt::format("element {} is not 0 in {:.1f} % of {} runs; {:.1f} % are expected", i, 100 * share, draws_,
                       100 * p);
  }
  return "";
}

}  // namespace tenon::tools

#include "tenon/tools/error_statistics.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <vector>

#include "base/fail.h"
#include "base/names.h"
#include "tensor/element_value.h"

namespace tenon::tools {
namespace {

constexpr std::string_view measure_names[] = {"elementwise", "max", "mean", "median", "quantile"};
constexpr double infinity = std::numeric_limits<double>::infinity();
// Numbers are made doubles so many at a time.
constexpr int64_t chunk = 4096;

template <typename T>
void widen(const Tensor& tensor, int64_t first, std::span<double> out) {
  const T* numbers = tensor.data<T>().data() + first;
  for (size_t i = 0; i < out.size(); ++i) {
    if constexpr (std::is_arithmetic_v<T>)
      out[i] = static_cast<double>(numbers[i]);
    else
      out[i] = static_cast<double>(static_cast<float>(numbers[i]));
  }
}

// Elements from `first` on, as doubles.
void read(const Tensor& tensor, int64_t first, std::span<double> out) {
  switch (tensor.type()) {
    case ElementType::float32:
      return widen<float>(tensor, first, out);
    case ElementType::float64:
      return widen<double>(tensor, first, out);
    case ElementType::float16:
      return widen<float16>(tensor, first, out);
    case ElementType::bfloat16:
      return widen<bfloat16>(tensor, first, out);
    default:
      for (size_t i = 0; i < out.size(); ++i) out[i] = element_as_double(tensor, first + static_cast<int64_t>(i));
  }
}

// The place of a float among all of its type, which are mantissa bits apart from their neighbours: 0 is at 0.
double place(double number, int fraction_bits, int lowest_exponent) {
  if (number == 0) return 0;
  int exponent = 0;
  const double fraction = std::frexp(std::fabs(number), &exponent);  // 0.5 to 1
  const double steps = exponent <= lowest_exponent
                           ? std::ldexp(std::fabs(number), fraction_bits + 1 - lowest_exponent)
                           : std::ldexp(fraction * 2 - 1 + (exponent - lowest_exponent), fraction_bits);
  return number < 0 ? -steps : steps;
}

// How a type writes numbers: bits below the leading one, and the exponent of the smallest normal number as frexp has
// it. No bits: it is no floating-point type whose steps are counted.
struct Steps {
  int fraction_bits = 0, lowest_exponent = 0;
};

Steps steps_of(ElementType type) {
  switch (type) {
    case ElementType::float64:
      return {52, -1021};
    case ElementType::float32:
      return {23, -125};
    case ElementType::float16:
      return {10, -13};
    case ElementType::bfloat16:
      return {7, -125};
    default:
      return {};
  }
}

// Those of the type that has fewer numbers.
Steps coarser(ElementType a, ElementType b) {
  const Steps first = steps_of(a), second = steps_of(b);
  return first.fraction_bits < second.fraction_bits ? first : second;
}

double steps_between(double a, double b, const Steps& steps) {
  if (steps.fraction_bits == 0) return 0;
  return std::fabs(place(a, steps.fraction_bits, steps.lowest_exponent) -
                   place(b, steps.fraction_bits, steps.lowest_exponent));
}

class Judge {
 public:
  Judge(const Tensor& actual, const Tensor& expected, const ErrorLimit& limit)
      : actual_(actual), expected_(expected), limit_(limit), steps_(coarser(actual.type(), expected.type())) {}

  ErrorVerdict run() {
    const int64_t elements = expected_.elements();
    statistics_.elements = elements;
    std::vector<double> a(chunk), e(chunk);
    for (int64_t first = 0; first < elements; first += chunk) {
      const auto count = static_cast<size_t>(std::min(chunk, elements - first));
      read(actual_, first, {a.data(), count});
      read(expected_, first, {e.data(), count});
      for (size_t i = 0; i < count; ++i) take(a[i], e[i], first + static_cast<int64_t>(i));
    }
    finish();
    return verdict();
  }

 private:
  void take(double a, double e, int64_t at) {
    statistics_.nans += std::isnan(a);
    statistics_.infinities += std::isinf(a);
    statistics_.expected_nans += std::isnan(e);
    statistics_.expected_infinities += std::isinf(e);
    if (!std::isfinite(a) || !std::isfinite(e)) {
      const bool alike = a == e || (std::isnan(a) && std::isnan(e));
      if (!alike && statistics_.unlike++ == 0) note_worst(a, e, at);
      return;
    }
    const double off = std::fabs(a - e);
    finite_ += 1;
    sum_ += off;
    squares_ += off * off;
    products_ += a * e;
    actual_squares_ += a * a;
    expected_squares_ += e * e;
    statistics_.largest = std::max(statistics_.largest, std::fabs(e));
    if (keeps_errors()) errors_.push_back(static_cast<float>(off));
    if (off == 0) return;
    if (e != 0) statistics_.max_relative = std::max(statistics_.max_relative, off / std::fabs(e));
    statistics_.max_ulps = std::max(statistics_.max_ulps, steps_between(a, e, steps_));
    if (limit_.measure == ErrorMeasure::elementwise) take_excess(off, e);
    if (off <= statistics_.max_absolute) return;
    statistics_.max_absolute = off;
    if (statistics_.unlike == 0) note_worst(a, e, at);
  }

  void take_excess(double off, double e) {
    const double allowed = limit_.tolerance.absolute + limit_.tolerance.relative * std::fabs(e);
    if (off - allowed <= worst_excess_) return;
    worst_excess_ = off - allowed;
    worst_off_ = off;
    worst_allowed_ = allowed;
  }

  bool keeps_errors() const {
    return limit_.measure == ErrorMeasure::median || limit_.measure == ErrorMeasure::quantile;
  }

  void note_worst(double a, double e, int64_t at) {
    statistics_.worst = at;
    statistics_.worst_actual = a;
    statistics_.worst_expected = e;
  }

  void finish() {
    statistics_.mean_absolute = finite_ > 0 ? sum_ / finite_ : 0;
    const double lengths = std::sqrt(actual_squares_) * std::sqrt(expected_squares_);
    statistics_.cosine = lengths > 0 ? products_ / lengths : squares_ == 0 ? 1 : 0;
    statistics_.sqnr = squares_ == 0 ? infinity : 10 * std::log10(expected_squares_ / squares_);
    if (statistics_.unlike > 0) statistics_.sqnr = -infinity;
  }

  double measured() {
    switch (limit_.measure) {
      case ErrorMeasure::elementwise:
        return worst_off_;
      case ErrorMeasure::max:
        return statistics_.max_absolute;
      case ErrorMeasure::mean:
        return statistics_.mean_absolute;
      case ErrorMeasure::median:
        return quantile(0.5);
      case ErrorMeasure::quantile:
        return quantile(limit_.quantile);
    }
    return 0;
  }

  double quantile(double fraction) {
    if (errors_.empty()) return 0;
    const auto at = static_cast<std::ptrdiff_t>(std::ceil(fraction * static_cast<double>(errors_.size())) - 1);
    const auto middle = errors_.begin() + std::clamp<std::ptrdiff_t>(at, 0, std::ssize(errors_) - 1);
    std::nth_element(errors_.begin(), middle, errors_.end());
    return *middle;
  }

  ErrorVerdict verdict() {
    ErrorVerdict result{statistics_, true, measured(), 0};
    result.limit = limit_.measure == ErrorMeasure::elementwise
                       ? worst_allowed_
                       : limit_.tolerance.absolute + limit_.tolerance.relative * statistics_.largest;
    if (statistics_.unlike > 0) result.error = infinity;
    result.within = result.error <= result.limit;
    return result;
  }

  const Tensor &actual_, &expected_;
  const ErrorLimit& limit_;
  Steps steps_;
  ErrorStatistics statistics_;
  double finite_ = 0, sum_ = 0, squares_ = 0, products_ = 0, actual_squares_ = 0, expected_squares_ = 0;
  double worst_excess_ = -infinity, worst_off_ = 0, worst_allowed_ = 0;
  std::vector<float> errors_;
};

}  // namespace

std::string_view name_of(ErrorMeasure measure) { return measure_names[static_cast<size_t>(measure)]; }

ErrorMeasure error_measure(std::string_view name) {
  const auto found = std::ranges::find(measure_names, name);
  if (found != std::end(measure_names)) return static_cast<ErrorMeasure>(found - std::begin(measure_names));
  const std::string_view nearest = nearest_name(name, measure_names);
  throw Error(ErrorCode::invalid_argument, fmt::format("there is no measure '{}' of errors", name),
              nearest.empty() ? fmt::format("the measures are {}", quoted_list(measure_names))
                              : fmt::format("did you mean '{}'?", nearest));
}

ErrorVerdict judge(const Tensor& actual, const Tensor& expected, const ErrorLimit& limit) {
  TENON_CHECK(actual.shape() == expected.shape());
  return Judge(actual, expected, limit).run();
}

}  // namespace tenon::tools

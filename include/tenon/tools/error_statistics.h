#pragma once

#include <string>
#include <string_view>

#include "tenon/tools/compare_values.h"

namespace tenon::tools {

// How far the numbers of a tensor are from those that were expected.
struct ErrorStatistics {
  int64_t elements = 0;
  double max_absolute = 0, mean_absolute = 0;
  double max_relative = 0;  // of numbers that should not be 0
  double cosine = 1;        // of the angle between the two as vectors
  double sqnr = 0;          // power of what was expected by that of the error, in dB; infinite without an error
  double max_ulps = 0;      // steps from one number of the type to the next, of the coarser of two
  double largest = 0;       // magnitude that was expected
  int64_t nans = 0, infinities = 0, expected_nans = 0, expected_infinities = 0;
  int64_t unlike = 0;  // elements of which one is NaN or infinite and the other is not the same
  int64_t worst = -1;  // the element that is furthest off; -1 if none is
  double worst_actual = 0, worst_expected = 0;
};

// What of the errors of a tensor is held against the tolerance.
enum class ErrorMeasure : unsigned char {
  elementwise,  // each |actual - expected| <= absolute + relative * |expected|
  // A statistic of |actual - expected| <= absolute + relative * (the largest |expected| of the tensor).
  max,
  mean,
  median,
  quantile,
};

struct ErrorLimit {
  ErrorMeasure measure = ErrorMeasure::max;
  double quantile = 0.99;  // for ErrorMeasure::quantile, 0 to 1
  Tolerance tolerance = {1e-3, 1e-6};
};

// "max", "quantile"; and the measure of a name. Throws ErrorCode::invalid_argument, with the nearest name as a hint.
std::string_view name_of(ErrorMeasure measure);
ErrorMeasure error_measure(std::string_view name);

struct ErrorVerdict {
  ErrorStatistics statistics;
  bool within = true;
  double error = 0, limit = 0;  // of the measure; of the worst element when that is elementwise
};

// Both must be numeric tensors of one shape; types may differ. NaN is equal to NaN, infinities to those of their sign;
// any other difference with one is beyond every limit.
ErrorVerdict judge(const Tensor& actual, const Tensor& expected, const ErrorLimit& limit);

}  // namespace tenon::tools

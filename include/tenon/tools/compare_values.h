#pragma once

#include <string>

#include "tenon/session.h"

namespace tenon::tools {

struct Tolerance {
  double relative = 1e-3;
  double absolute = 1e-7;
};

// How two values differ: "" if every element is within |actual - expected| <= absolute + relative * |expected|, else a
// sentence with the largest absolute and relative error, the place, and both elements there.
std::string difference(const Value& actual, const Value& expected, const Tolerance& tolerance);

// The same for |actual - expected| <= absolute + relative * (the largest magnitude of a float in `expected`).
std::string difference_by_size(const Value& actual, const Value& expected, const Tolerance& tolerance);

// The largest difference between the floats of two results, as a share of the largest of the expected ones; infinite
// where shapes, or numbers that are not finite, differ. Values of other types are left out.
double largest_difference(const NamedValues& actual, const NamedValues& expected);

}  // namespace tenon::tools

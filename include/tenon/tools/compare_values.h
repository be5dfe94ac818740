#pragma once

#include <string>

#include "tenon/value.h"

namespace tenon::tools {

struct Tolerance {
  double relative = 1e-3;
  double absolute = 1e-7;
};

// How two values differ: "" if every element is within |actual - expected| <= absolute + relative * |expected|, else a
// sentence with the largest absolute and relative error, the place, and both elements there.
std::string difference(const Value& actual, const Value& expected, const Tolerance& tolerance);

}  // namespace tenon::tools

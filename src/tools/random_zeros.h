#pragma once

#include "tenon/tools/compare_values.h"

namespace tenon::tools {

// How two tensors differ of which elements are zero at random places, as Dropout and Bernoulli leave them: "" if type
// and shape are equal, elements that are zero in neither are within the tolerance, and the shares of zeros are within
// five standard errors of each other, which chance exceeds once in two million comparisons.
std::string difference_but_for_zeros(const Value& actual, const Value& expected, const Tolerance& tolerance);

}  // namespace tenon::tools

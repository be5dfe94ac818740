#pragma once

#include "tenon/custom_operator.h"

// y = x, but not below -limit and not above limit.
tenon::CustomOperator clamp();
// y = (x - mean) / deviation, for each column of x.
tenon::CustomOperator standardize();

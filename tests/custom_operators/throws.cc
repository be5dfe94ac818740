// A library that fails while it lists its operators.
#include <stdexcept>

#include "tenon/custom_operator.h"

TENON_CUSTOM_OPERATORS(operators) {
  operators.clear();
  throw std::runtime_error("no licence found");
}

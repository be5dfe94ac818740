// A library that uses Tenon without being linked with it.
#include "tenon/custom_operator.h"

TENON_CUSTOM_OPERATORS(operators) {
  operators.clear();
  throw tenon::Error(tenon::ErrorCode::internal, "never called");
}

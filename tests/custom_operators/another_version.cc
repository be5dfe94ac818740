// A library that was built for a version of Tenon that never was. What it lists must not be called.
#include <cstdlib>

#include "tenon/custom_operator.h"

extern "C" __attribute__((visibility("default"))) const tenon::CustomOperatorLibrary tenon_custom_operators;
extern "C" const tenon::CustomOperatorLibrary tenon_custom_operators = {
    "0.0.1-never", tenon::standard_library, [](std::vector<tenon::CustomOperator>&) { std::abort(); }};

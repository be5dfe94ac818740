// A library whose std::vector is not this build's. What it lists must not be called.
#include <cstdlib>

#include "tenon/custom_operator.h"

extern "C" __attribute__((visibility("default"))) const tenon::CustomOperatorLibrary tenon_custom_operators;
extern "C" const tenon::CustomOperatorLibrary tenon_custom_operators = {
    tenon::header_version, "another standard library", [](std::vector<tenon::CustomOperator>&) { std::abort(); }};

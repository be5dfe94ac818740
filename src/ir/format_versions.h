// Versions of the ONNX format (IR versions) that brought something.
#pragma once

#include <cstdint>

namespace tenon::ir {

inline constexpr int64_t initializers_alone = 4;  // initializers that are no inputs
inline constexpr int64_t functions_exist = 8;     // model-local functions
inline constexpr int64_t newest_ir_version = 14;

}  // namespace tenon::ir

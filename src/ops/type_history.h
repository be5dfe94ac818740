#pragma once

#include <cstddef>
#include <string_view>

#include "ir/type.h"

namespace tenon::ops {

class Operator;

// Whether a version of the operator allows a type for input or output `i`, as ONNX's schemas say (type_history.txt).
// True where that is not known: of other domains' operators, and of types that are not.
bool allows_input(const Operator& op, int version, size_t i, const ir::Type& type);
bool allows_output(const Operator& op, int version, size_t i, const ir::Type& type);

// Whether the operator's version is one of ONNX, not deprecated, and not one of other runtimes.
bool is_in_onnx(const Operator& op, int version);

// The content of type_history.txt, which the build puts into the library.
std::string_view type_history_text();

}  // namespace tenon::ops

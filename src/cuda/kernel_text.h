// The text that kernels are compiled from.
#pragma once

#include <string>
#include <string_view>

#include "tenon/element_type.h"

namespace tenon::cuda {

// What comes before every kernel: short names of types, float16 and bfloat16, conversions. Needs no header.
std::string_view kernel_prelude();

// The type of an element in kernels: "float", "f16", "i64". Those of less than a byte are "u8": codes lie packed.
std::string_view type_text(ElementType type);
// The type that kernels compute in: "float" for all floats of at most 32 bits, else the type itself.
std::string_view wide_type_text(ElementType type);

// A number as text that means just that one in the wide type.
std::string number_text(double number, ElementType type);

}  // namespace tenon::cuda

#pragma once

#include <string_view>

namespace tenon {

// The version of these headers, and that of the library they are used with. The first has internal linkage: the dynamic
// linker would merge it with that of other libraries, whatever their versions.
constexpr char header_version[] = "0.1.0";
std::string_view version();

}  // namespace tenon

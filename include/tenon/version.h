#pragma once

#include <string_view>

namespace tenon {

// The version of these headers, and that of the library they are used with.
inline constexpr char header_version[] = "0.1.0";
std::string_view version();

}  // namespace tenon

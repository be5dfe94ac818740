#pragma once

#include <string_view>

namespace tenon::tools {

// Whether a name is what a pattern says, in which each '*' stands for any text.
bool fits_pattern(std::string_view name, std::string_view pattern);

}  // namespace tenon::tools

#pragma once

#include <span>
#include <string>
#include <string_view>

namespace tenon {

// The candidate nearest to `name` by edit distance (letters of different case count half), or "" when none is near.
std::string_view nearest_name(std::string_view name, std::span<const std::string_view> candidates);

// "'a', 'b' and 3 more", for error messages.
std::string quoted_list(std::span<const std::string_view> names, size_t most = 8);

}  // namespace tenon

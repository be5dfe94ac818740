#pragma once

#include <string_view>

namespace tenon {

// Tells builds of other sources apart, also of one version: a word that the build makes of all files of the library.
std::string_view source_hash();

}  // namespace tenon

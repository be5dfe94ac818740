#pragma once

#include <filesystem>
#include <vector>

#include "tenon/custom_operator.h"

namespace tenon {

// The operators of a shared library, which stays loaded until the process ends: results may have memory that its code
// gives back. A name without a folder is looked for in the current one, then where the system looks for libraries.
// Throws ErrorCode::missing_file if there is none, ErrorCode::invalid_library if it is not one for this Tenon.
std::vector<CustomOperator> load_custom_operators(const std::filesystem::path& library);

}  // namespace tenon

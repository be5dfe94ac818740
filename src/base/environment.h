#pragma once

#include <optional>

namespace tenon {

// The number in an environment variable; nullopt where it is not set. Throws ErrorCode::invalid_argument for anything
// else than a number of at least `least`.
std::optional<int> number_in_environment(const char* name, int least);

}  // namespace tenon

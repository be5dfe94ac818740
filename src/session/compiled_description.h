#pragma once

#include <string>
#include <string_view>

#include "session/compiled_file.h"

namespace tenon {

std::string write_description(const CompiledDescription& description);
// Throws ErrorCode::truncated or invalid_model where it cannot be read.
CompiledDescription read_description(std::string_view bytes);

// A node's origin as text.
std::string write_origin(const ir::Origin& origin);
ir::Origin read_origin(std::string_view bytes);

}  // namespace tenon

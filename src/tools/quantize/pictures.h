#pragma once

#include <filesystem>
#include <string>

#include "tenon/tools/samples.h"

namespace tenon::tools {

// Whether files with this ending are pictures: ".png".
bool is_picture(const std::string& ending);

// A picture as the input wants it: [N, C, H, W] or [N, H, W, C] of floats or bytes, with 1 or 3 channels.
Tensor read_picture(const std::filesystem::path& path, const ValueInfo& input, const PictureOptions& options);

}  // namespace tenon::tools

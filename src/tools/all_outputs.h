#pragma once

#include <string>
#include <vector>

#include "tenon/tools/onnx_model.h"

namespace tenon::tools {

// The model, with every value that a node of its main graph makes as an output; `names` receives those of all outputs.
OnnxModel with_all_outputs(const OnnxModel& model, std::vector<std::string>& names);

}  // namespace tenon::tools

#pragma once

#include <map>
#include <string>

#include "tenon/tools/onnx_model.h"

namespace tenon::tools {

// The largest finite magnitude of every float value that nodes of the main graph make, by running the model.
std::map<std::string, double> largest_magnitudes(const OnnxModel& model, const NamedValues& inputs);

}  // namespace tenon::tools

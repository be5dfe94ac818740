// What of a quantized model does not compute on codes.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "tenon/tools/onnx_model.h"

namespace tenon::tools {

// The model with float16 instead of float in all nodes but those that are named and those that make codes or read them,
// with casts in between. `magnitudes` are the largest of values by name: what float16 might not hold stays float.
OnnxModel rest_in_half(const OnnxModel& quantized, std::vector<std::string> on_codes,
                       const std::map<std::string, double>& magnitudes);

}  // namespace tenon::tools

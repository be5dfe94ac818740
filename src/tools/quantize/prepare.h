#pragma once

#include "tenon/tools/onnx_model.h"

namespace tenon::tools {

// The model as the quantizer wants it, still in the opset it had: calls of functions are their bodies, Constant nodes
// and what older formats have as inputs with defaults are constants, BatchNormalization is in the weights before it,
// weights are computed, names are those of one value each. `notes` receives what could not be done.
OnnxModel prepare_to_quantize(const OnnxModel& model, std::vector<std::string>& notes);

}  // namespace tenon::tools

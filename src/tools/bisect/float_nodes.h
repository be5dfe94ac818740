#pragma once

#include <string>
#include <vector>

#include "tenon/tools/onnx_model.h"

namespace tenon::tools {

// A node that reads dequantized values. One without a name goes by that of its first output.
struct QuantizedNode {
  std::string name, output;
};

// Those of a model with QuantizeLinear and DequantizeLinear.
std::vector<QuantizedNode> quantized_nodes(const OnnxModel& quantized);

// The model with such nodes in float: they read what was not quantized yet, and the weights that they have in
// `original`, as well as a Relu or Clip that the quantizer took out before them. A node is the same in both models if
// it has the same name, or else its first output.
OnnxModel with_float_nodes(const OnnxModel& quantized, const OnnxModel& original,
                           const std::vector<std::string>& nodes);

}  // namespace tenon::tools

#pragma once

#include <string>
#include <vector>

#include "tenon/tools/onnx_model.h"

namespace tenon::tools {

// One thing that a tool did: {"removed node", "Relu 'r' (node 3)", ""}, {"renamed value", "x", "image"}.
struct ModelChange {
  std::string kind, name, detail;
};

// What a tool made of a model.
struct ChangedModel {
  OnnxModel model;
  std::vector<ModelChange> changes;
  std::vector<std::string> notes;  // what the user may not expect
};

}  // namespace tenon::tools

#pragma once

#include <string>
#include <vector>

#include "tenon/tools/changed_model.h"

namespace tenon::tools {

struct ExtractOptions {
  // Values of the main graph that become the inputs, in this order: what computes them is left out. Empty: those inputs
  // of the model that the outputs need.
  std::vector<std::string> inputs;
  std::vector<std::string> outputs;  // empty: those of the model
};

// The part of a model between values. Throws ErrorCode::unknown_name for a value that does not exist,
// ErrorCode::invalid_argument where the outputs need inputs of the model that are not among `inputs`.
ChangedModel extract(const OnnxModel& model, const ExtractOptions& options);

}  // namespace tenon::tools

#pragma once

#include <map>
#include <string>

#include "tenon/tools/changed_model.h"

namespace tenon::tools {

struct FixOptions {
  std::map<std::string, Shape> shapes;  // of inputs, by name
  std::map<std::string, int64_t> dims;  // sizes of named dimensions
};

// Pins sizes of inputs, infers what follows from that, and writes the shapes of outputs and of values that the model
// declares. Throws ErrorCode::unknown_name for an input or dimension that does not exist, ErrorCode::shape_mismatch
// where the sizes contradict the model or each other.
ChangedModel fix(const OnnxModel& model, const FixOptions& options);

}  // namespace tenon::tools

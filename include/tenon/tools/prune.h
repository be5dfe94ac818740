#pragma once

#include <string>
#include <vector>

#include "tenon/tools/changed_model.h"

namespace tenon::tools {

struct PruneOptions {
  // Outputs that stay, or outputs that go: one of the two is given. Neither: only what no output needs goes.
  std::vector<std::string> keep, drop;
  bool unused_inputs = false;  // whether inputs that nothing reads go too
};

// Drops outputs, and all that only they need. Throws ErrorCode::unknown_name for an output that does not exist,
// ErrorCode::invalid_argument if none would be left.
ChangedModel prune(const OnnxModel& model, const PruneOptions& options);

}  // namespace tenon::tools

#pragma once

#include <string>
#include <utility>
#include <vector>

#include "tenon/tools/changed_model.h"

namespace tenon::tools {

struct MergeOptions {
  // Outputs of the first model and the inputs of the second that they become. Empty: those that have one name.
  std::vector<std::pair<std::string, std::string>> map;
  // In front of all names of values and nodes of a model. Names of the second that the first has too get `clash_prefix`
  // then still.
  std::string first_prefix = {}, second_prefix = {};
  std::string clash_prefix = "second/";
  bool keep_joined = false;  // whether outputs that are joined stay outputs
};

// The second model behind the first. Where their opsets differ, the model of the older one is brought up. Metadata is
// that of both; where they disagree the first wins, which is noted. Throws ErrorCode::unknown_name for names in the map
// that do not exist, type_mismatch and shape_mismatch where the joined values cannot be the same.
ChangedModel merge(const OnnxModel& first, const OnnxModel& second, const MergeOptions& options = {});

}  // namespace tenon::tools

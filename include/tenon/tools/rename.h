#pragma once

#include <string>
#include <utility>
#include <vector>

#include "tenon/tools/changed_model.h"

namespace tenon::tools {

// Old and new names. One '*' in the old name stands for any text, which takes the place of the '*' in the new one. A
// name that several rules fit goes by the first.
using NameRules = std::vector<std::pair<std::string, std::string>>;

struct RenameOptions {
  NameRules values;  // inputs, outputs, initializers and what nodes compute, in subgraphs too
  NameRules nodes;
  NameRules dims;           // named sizes
  std::string prefix = {};  // of every value and node that no rule names
  bool keep_io = false;     // whether inputs and outputs of the model go without the prefix
};

// Functions of the model keep their names, and those in them. Throws ErrorCode::unknown_name for a rule that fits
// nothing, ErrorCode::duplicate_name where two values, or two dims, would have one name.
ChangedModel rename(const OnnxModel& model, const RenameOptions& options);

}  // namespace tenon::tools

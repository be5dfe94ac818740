#pragma once

#include <map>
#include <string>
#include <vector>

#include "tenon/tools/changed_model.h"
#include "tenon/tools/make_inputs.h"

namespace tenon::tools {

struct DtypeOptions {
  ElementType type = ElementType::float16;  // or bfloat16
  // Nodes by name or operator; one '*' stands for any text. `only` are converted and no others, `keep` are not.
  std::vector<std::string> only = {}, keep = {};
  bool keep_io = false;  // whether inputs and outputs stay float
  // Whether the model is run to find what would overflow; with these inputs.
  bool check_overflow = true;
  InputSources inputs = {};
  // The largest magnitudes of values by name, where they are known already: then the model is not run for them.
  std::map<std::string, double> magnitudes = {};
  bool compare = true;  // whether both models are run to see how far they differ
};

// A node that computes in float, and why.
struct KeptNode {
  std::string node, op_type, reason;
};

struct DtypeConversion {
  OnnxModel model;
  std::vector<ModelChange> changes;
  std::vector<std::string> notes;
  int64_t converted_nodes = 0, casts = 0;
  std::vector<KeptNode> kept;
  // From running both: the largest difference, as a share of the largest number of its output. `why_not` says why that
  // could not be done.
  double largest_difference = 0;
  std::string why_not;
};

// Float weights and values become float16 or bfloat16, with casts around nodes that stay. Bodies of loops and
// conditions and the model's functions stay as they are. Throws ErrorCode::invalid_argument for another type,
// ErrorCode::unknown_name for an entry of `only` or `keep` that fits no node.
DtypeConversion convert_dtype(const OnnxModel& model, const DtypeOptions& options = {});

}  // namespace tenon::tools

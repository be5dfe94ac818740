#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "tenon/tools/onnx_model.h"

namespace tenon::tools {

struct ConvertOptions {
  // The operator sets to convert to, by domain ("" is ai.onnx); those of other domains stay.
  std::map<std::string, int64_t> opsets = {};
  // 0: as it is, but on the way down no newer than what was released with the operator set.
  int64_t ir_version = 0;
  // As in SessionOptions.
  std::vector<CustomOperator> custom_operators = {};
  std::vector<std::filesystem::path> custom_operator_libraries = {};
};

// A node that cannot be written in the operator sets that were asked for.
struct ConversionBlocker {
  std::string node, op_type, reason;
};

struct Conversion {
  std::optional<OnnxModel> model;  // nothing if there are blockers
  std::vector<ConversionBlocker> blockers;
  std::vector<std::string> notes;
  int64_t nodes_before = 0, nodes_after = 0;

  // The model. Throws ErrorCode::unsupported with every blocker.
  const OnnxModel& require() const;
};

// The same model in other versions of the operator sets, up or down. Throws ErrorCode::invalid_argument for versions
// that Tenon does not know, and as Session::load does for a model that is broken.
Conversion convert(const OnnxModel& model, const ConvertOptions& options);

}  // namespace tenon::tools

// What the model behind a session says of the nodes and values of its runs.
#pragma once

#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "tenon/session.h"
#include "tenon/tools/onnx_model.h"
#include "tools/value_names.h"

namespace tenon::tools {

class WatchedModel {
 public:
  // Without `model`, neither attributes nor constants are known, and of original names only those that rewrites tell.
  WatchedModel(const Session& session, const OnnxModel* model);

  bool is_input(std::string_view value) const { return inputs_.contains(value); }
  bool is_constant(std::string_view value) const { return constants_.contains(value); }
  // Null for what is none; of several in bodies that share a name, the outermost.
  const Tensor* constant(std::string_view value) const;
  // By what describes the node in reports.
  std::string attributes_of(const std::string& node) const;
  // The names that the model's file has for what a run calls `value`; none of what the optimiser brought in.
  std::vector<std::string> original_names(std::string_view value) const;
  // As ValueNames::channels_in_blocks.
  int64_t channels_in_blocks(std::string_view value) const { return renamed_.channels_in_blocks(std::string(value)); }
  // What nodes of the main graph make, in order.
  const std::vector<std::string>& made_values() const { return made_; }
  bool knows_model() const { return model_ != nullptr; }

 private:
  void read(const ir::Model& model);

  std::shared_ptr<const ir::Model> model_;  // a copy with origins; null if there is none
  std::set<std::string, std::less<>> inputs_;
  std::map<std::string, const Tensor*, std::less<>> constants_;
  std::map<std::string, std::string> attributes_;
  std::vector<std::string> made_;
  std::set<std::string, std::less<>> names_;  // of all values, those in bodies too
  ValueNames renamed_;
};

}  // namespace tenon::tools

#include "tools/watched_model.h"

#include "ir/print.h"
#include "ir/visit.h"

namespace tenon::tools {

WatchedModel::WatchedModel(const Session& session, const OnnxModel* model) : renamed_(session.rewrites()) {
  for (const ValueInfo& input : session.inputs()) inputs_.insert(input.name);
  if (model) {
    std::unique_ptr<ir::Model> copy = model->ir().clone();
    ir::record_origins(*copy);
    model_ = std::move(copy);
    read(*model_);
  }
}

void WatchedModel::read(const ir::Model& model) {
  for (const ir::Node& node : model.graph->nodes()) {
    for (const ir::Value* output : node.outputs()) {
      if (output) made_.push_back(output->name);
    }
  }
  const auto read_graph = [&](ir::Graph& graph) {
    for (const ir::Value& value : graph.values()) names_.insert(value.name);
    for (const ir::Value* value : graph.initializers()) {
      if (value->constant() && !inputs_.contains(value->name))
        constants_.emplace(value->name, &value->constant()->tensor);
    }
    for (const ir::Node& node : graph.nodes()) attributes_[node.describe()] = ir::attributes_text(node);
  };
  ir::for_each_graph(*model.graph, read_graph);
  for (const auto& function : model.functions) ir::for_each_graph(*function->body, read_graph);
}

const Tensor* WatchedModel::constant(std::string_view value) const {
  auto found = constants_.find(value);
  return found == constants_.end() ? nullptr : found->second;
}

std::string WatchedModel::attributes_of(const std::string& node) const {
  auto found = attributes_.find(node);
  return found == attributes_.end() ? "" : found->second;
}

std::vector<std::string> WatchedModel::original_names(std::string_view value) const {
  std::vector<std::string> names = {std::string(value)};
  for (std::string& name : renamed_.before(names.front())) names.push_back(std::move(name));
  if (knows_model()) std::erase_if(names, [&](const std::string& name) { return !names_.contains(name); });
  return names;
}

}  // namespace tenon::tools

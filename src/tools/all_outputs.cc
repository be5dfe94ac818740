#include "tools/all_outputs.h"

#include <algorithm>

#include "ir/graph.h"

namespace tenon::tools {

OnnxModel with_all_outputs(const OnnxModel& model, std::vector<std::string>& names) {
  std::unique_ptr<ir::Model> copy = model.ir().clone();
  ir::Graph& graph = *copy->graph;
  for (const ir::Value* output : graph.outputs()) names.push_back(output->name);
  for (ir::Node& node : graph.nodes()) {
    for (ir::Value* value : node.outputs()) {
      if (!value || std::ranges::find(graph.outputs(), value) != graph.outputs().end()) continue;
      graph.add_output(*value);
      names.push_back(value->name);
    }
  }
  return model.with(std::move(copy));
}

}  // namespace tenon::tools

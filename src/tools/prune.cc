#include "tenon/tools/prune.h"

#include <algorithm>

#include "base/fail.h"
#include "tools/graph_edit.h"

namespace tenon::tools {
namespace {

void require_outputs(const ir::Graph& graph, const std::vector<std::string>& names) {
  std::vector<std::string_view> known;
  for (const ir::Value* output : graph.outputs()) known.push_back(output->name);
  for (const std::string& name : names) {
    if (std::ranges::find(known, name) != known.end()) continue;
    throw Error(ErrorCode::unknown_name, fmt::format("the model has no output '{}'", name), nearest_hint(name, known));
  }
}

void drop_outputs(ir::Graph& graph, const PruneOptions& options, std::vector<ModelChange>& changes) {
  const auto goes = [&](const std::string& name) {
    if (!options.keep.empty()) return std::ranges::find(options.keep, name) == options.keep.end();
    return std::ranges::find(options.drop, name) != options.drop.end();
  };
  for (size_t i = graph.outputs().size(); i-- > 0;) {
    const std::string name = graph.outputs()[i]->name;
    if (!goes(name)) continue;
    changes.push_back({"removed output", name, ""});
    graph.remove_output(i);
  }
  if (graph.outputs().empty()) fail(ErrorCode::invalid_argument, "no output would be left");
}

void drop_unused_inputs(ir::Graph& graph, std::vector<ModelChange>& changes) {
  const auto needed = needed_values(graph);
  for (ir::Value* input : std::vector(graph.inputs())) {
    if (needed.contains(input)) continue;
    changes.push_back({"removed input", input->name, ""});
    graph.remove_input(*input);
  }
}

}  // namespace

ChangedModel prune(const OnnxModel& model, const PruneOptions& options) {
  if (!options.keep.empty() && !options.drop.empty())
    fail(ErrorCode::invalid_argument, "both outputs to keep and outputs to drop are given");
  std::unique_ptr<ir::Model> copy = model.ir().clone();
  ir::Graph& graph = *copy->graph;
  require_outputs(graph, options.keep);
  require_outputs(graph, options.drop);
  std::vector<ModelChange> changes;
  drop_outputs(graph, options, changes);
  if (options.unused_inputs) drop_unused_inputs(graph, changes);
  remove_unneeded(graph, changes);
  remove_unused_functions(*copy, changes);
  return {model.with(std::move(copy)), std::move(changes), {}};
}

}  // namespace tenon::tools

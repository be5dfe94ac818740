#include "passes/lower.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <unordered_set>

#include "ir/format_versions.h"
#include "ir/print.h"
#include "ir/unique_names.h"
#include "ir/visit.h"
#include "ops/operator.h"
#include "passes/function_of_node.h"
#include "passes/lower_node.h"
#include "tenon/error.h"

namespace tenon::passes {
namespace {

// Where a model imports no version of ai.onnx and a rewrite needs one.
constexpr int64_t usual_opset = 17;
constexpr std::string_view function_domain = "tenon";
// What ir::Graph puts into names that it makes up.
constexpr std::string_view made_up = "/tenon_";

std::vector<ir::Node*> nodes_of(ir::Graph& graph) {
  std::vector<ir::Node*> nodes;
  for (ir::Node& node : graph.nodes()) nodes.push_back(&node);
  return nodes;
}

class Lowerer {
 public:
  Lowerer(ir::Model& model, const LowerOptions& options) : model_(model), options_(options) {}

  std::vector<Blocker> run() {
    if (model_.opset_imports.version("") == 0) model_.opset_imports.set("", usual_opset);
    if (options_.as_functions && model_.ir_version >= ir::functions_exist) note_functions(*model_.graph);
    lower(*model_.graph, options_.simplify);
    if (!blockers_.empty()) return std::move(blockers_);
    for (const auto& [node, function] : calls_) call_function(*node, *function);
    if (!functions_.empty()) model_.opset_imports.set(function_domain, 1);
    for (auto& [_, function] : functions_) model_.functions.push_back(std::move(function));
    return {};
  }

 private:
  int64_t opset_of(const ir::Node& node) const { return model_.opset_imports.version(node.domain); }

  // Finds nodes of operators that the imported opset does not have, and notes a function for those that can be one.
  void note_functions(ir::Graph& whole) {
    for_each_graph(whole, [&](ir::Graph& graph) {
      for (ir::Node* node : nodes_of(graph)) {
        const ops::Operator* op = ops::operator_of(*node);
        if (op && !node->custom_operator && version_to_write(*op, *node, opset_of(*node)) == 0) note_function(*node);
      }
    });
  }

  void note_function(ir::Node& node) {
    const size_t blockers = blockers_.size();
    std::unique_ptr<ir::Function> function = function_of_node(node, [&](ir::Graph& body) { lower(body, {}); });
    if (!function || blockers_.size() > blockers) return blockers_.resize(blockers);
    function->domain = function_domain;
    function->opset_imports = model_.opset_imports;
    std::unique_ptr<ir::Function>& known = functions_[ir::to_text(*function->body)];
    if (!known) {
      function->name = fmt::format("{}_{}", node.op_type, functions_.size());
      known = std::move(function);
    }
    calls_.emplace(&node, known.get());
  }

  // Blockers are noted, and then nothing is lowered.
  void lower(ir::Graph& whole, const std::function<void()>& simplify) {
    auto is_call = [&](const ir::Node& node) { return calls_.contains(const_cast<ir::Node*>(&node)); };
    const std::vector<Blocker> blockers = fit_opsets(whole, model_.opset_imports, is_call, simplify);
    blockers_.insert(blockers_.end(), blockers.begin(), blockers.end());
    if (!blockers.empty()) return;
    for_each_graph(whole, [&](ir::Graph& graph) {
      for (ir::Node* node : nodes_of(graph)) {
        if (!is_call(*node)) lower(*node);
      }
    });
  }

  void lower(ir::Node& node) {
    const ops::Operator* op = ops::operator_of(node);
    const int64_t opset = opset_of(node);
    if (!op || node.custom_operator) return;
    const int version = version_to_write(*op, node, opset);
    if (op->newest_version() <= version) return;
    if (std::string reason = lower_node(node, *op, version); !reason.empty())
      blockers_.push_back({node.describe(), op->name, reason});
  }

  ir::Model& model_;
  const LowerOptions& options_;
  std::map<std::string, std::unique_ptr<ir::Function>> functions_;  // by their body
  std::map<ir::Node*, const ir::Function*> calls_;
  std::vector<Blocker> blockers_;
};

// Names that were made up are made up again when the model is read, so they do not stay.
void name_values_plainly(ir::Graph& graph) {
  for (ir::Value& value : graph.values()) {
    const size_t mark = value.name.rfind(made_up);
    if (mark == std::string::npos || value.is_graph_input()) continue;
    if (!graph.owner() && std::ranges::find(graph.outputs(), &value) != graph.outputs().end()) continue;
    value.name = mark > 0 ? value.name.substr(0, mark) : "value";
    if (!value.constant()) continue;
    auto constant = std::make_shared<ir::Constant>(*value.constant());
    constant->name = value.name;
    graph.set_initializer(value, ir::ConstantPtr(std::move(constant)));
  }
}

// Nodes that took another's place have its name, and other runtimes want each name once.
void name_nodes_apart(ir::Model& model) {
  std::unordered_set<std::string> taken;
  for_each_graph(*model.graph, [&](ir::Graph& graph) {
    for (ir::Node& node : graph.nodes()) {
      if (node.name.empty() || taken.insert(node.name).second) continue;
      const std::string name = node.name + "/" + node.op_type;
      node.name = name;
      for (int i = 1; !taken.insert(node.name).second; ++i) node.name = fmt::format("{}_{}", name, i);
    }
  });
}

// Lists that became attributes go. Types are declared for inputs and outputs only: the names of inferred sizes mean
// nothing outside of Tenon.
void tidy(ir::Graph& graph, int64_t ir_version) {
  graph.remove_unused_initializers(
      [&](const ir::Value& value) { return std::ranges::find(graph.outputs(), &value) == graph.outputs().end(); });
  for (ir::Value& value : graph.values()) value.value_info_position = -1;
  // A loop may hand in other shapes than were inferred for its first round, but for the number of the round and whether
  // there is one.
  const size_t fixed = graph.owner() && graph.owner()->op_type == "Loop" ? 2 : 0;
  for (size_t i = fixed; i < graph.inputs().size(); ++i) {
    if (graph.owner()) graph.inputs()[i]->type.shape.reset();
  }
  if (ir_version >= ir::initializers_alone || graph.owner()) return;
  for (ir::Value* value : graph.initializers()) {
    if (!value->is_graph_input()) graph.add_input(*value);
  }
}

}  // namespace

std::vector<Blocker> lower_nodes(ir::Model& model, const LowerOptions& options) {
  return Lowerer(model, options).run();
}

std::string to_text(const std::vector<Blocker>& blockers) {
  std::string text = blockers.size() == 1
                         ? "a node has no expression in the opset of the model:"
                         : fmt::format("{} nodes have no expression in the opset of the model:", blockers.size());
  for (const Blocker& blocker : blockers) text += fmt::format("\n  {}: {}", blocker.node, blocker.reason);
  return text;
}

void make_names_plain(ir::Model& model) {
  for_each_graph(*model.graph, [&](ir::Graph& graph) { name_values_plainly(graph); });
  name_nodes_apart(model);
  ir::make_names_unique(model);
}

void lower_to_imported_opsets(ir::Model& model) {
  if (const std::vector<Blocker> blockers = lower_nodes(model, {}); !blockers.empty()) {
    throw Error(ErrorCode::unsupported, to_text(blockers),
                "optimise at a lower level, or disable the passes that made them");
  }
  make_names_plain(model);  // before initializers become inputs, whose names stay
  for_each_graph(*model.graph, [&](ir::Graph& graph) { tidy(graph, model.ir_version); });
}

}  // namespace tenon::passes

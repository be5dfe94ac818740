#include "tenon/tools/optimize.h"

#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <map>
#include <unordered_map>

#include "ir/count.h"
#include "ir/format_versions.h"
#include "ir/unique_names.h"
#include "ir/verify.h"
#include "onnx/model_file.h"
#include "ops/operator.h"
#include "passes/constants.h"
#include "passes/infer.h"
#include "passes/lift.h"
#include "passes/lower.h"
#include "passes/optimizer.h"
#include "session/custom_operator.h"
#include "session/session_of_model.h"
#include "tools/constant_evaluator.h"

namespace tenon::tools {

struct OptimizedModel::Implementation {
  std::unique_ptr<ir::Model> model;
};

namespace {

using passes::OptimizerOptions;

std::unique_ptr<ir::Model> load_lifted(const std::filesystem::path& path, const OptimizeOptions& options,
                                       std::vector<std::string>& notes) {
  std::unique_ptr<ir::Model> model = onnx::load_model(path, nullptr, {.old_inputs_are_constants = true});
  notes = passes::lift_to_newest_opset(
      *model, list_custom_operators(options.custom_operators, options.custom_operator_libraries));
  passes::inline_functions(*model);
  passes::constants_to_initializers(*model->graph);
  ir::verify_and_sort(*model->graph);
  return model;
}

OptimizerOptions optimizer_options(const OptimizeOptions& options) {
  OptimizerOptions result;
  result.level = options.level;
  result.disabled = options.disabled_passes;
  result.keep = options.keep;
  result.evaluate = constant_evaluator();
  return result;
}

// Nodes in blocked layout are written as functions, whose bodies read sizes. A model that has no functions, or no
// operator for that, is optimised without them.
void leave_out_blocked_layout(const ir::Model& model, OptimizerOptions& options, std::vector<std::string>& notes) {
  constexpr int64_t shape_has_parts = 15;
  const int64_t opset = model.opset_imports.version("");
  if (options.level < OptimizationLevel::all) return;
  if (model.ir_version >= ir::functions_exist && (opset == 0 || opset >= shape_has_parts)) return;
  for (const char* pass : {"blocked-layout", "winograd"}) options.disabled.emplace_back(pass);
  notes.push_back(
      fmt::format("without the passes blocked-layout and winograd: a file of opset {} and IR version {} cannot "
                  "hold what they make",
                  opset, model.ir_version));
}

void count(const ir::Graph& graph, std::map<std::string, OperatorChange>& changes, int64_t OperatorChange::*counter) {
  for (const ir::Node& node : graph.nodes()) {
    std::string name = node.domain.empty() ? node.op_type : node.domain + "." + node.op_type;
    ++(changes[name].*counter);
    for (const ir::Attribute& attribute : node.attributes)
      attribute.for_each_graph([&](const ir::Graph& subgraph) { count(subgraph, changes, counter); });
  }
}

// The graph as a model of its own in the newest opsets, with every value of `extra` as an output too.
Session session_of(const ir::Model& model, const OptimizeOptions& how, const std::vector<std::string>& extra = {}) {
  std::unique_ptr<ir::Model> copy = model.clone();
  for (const auto& [domain, version] : model.opset_imports.entries()) {
    int64_t newest = ops::newest_opset_of(ir::canonical_domain(domain));
    if (newest > 0) copy->opset_imports.set(domain, std::max(version, newest));
  }
  if (copy->opset_imports.version("") == 0) copy->opset_imports.set("", ops::newest_opset);
  for (ir::Value& value : copy->graph->values()) {
    if (value.is_graph_input() || value.is_undefined() || !value.type.is_tensor()) continue;
    const auto& outputs = copy->graph->outputs();
    if (std::ranges::find(outputs, &value) == outputs.end() && std::ranges::count(extra, value.name))
      copy->graph->add_output(value);
  }
  ir::make_names_unique(*copy);
  SessionOptions options;
  options.level = OptimizationLevel::none;
  options.custom_operators = how.custom_operators;
  options.custom_operator_libraries = how.custom_operator_libraries;
  return tenon::session_of(std::move(copy), options);
}

// Keeps what the model looked like before each pass, and runs it afterwards.
class Verifier {
 public:
  Verifier(const ir::Model& model, const OptimizeOptions& options, const NamedValues& inputs,
           const Tolerance& tolerance)
      : model_(model), options_(options), inputs_(inputs), tolerance_(tolerance), before_(model.clone()) {
    expected_ = session_of(model, options_).run(inputs);
  }

  std::vector<VerifyFailure> failures;

  void after_pass(std::string_view pass) {
    if (!failures.empty()) return;
    try {
      NamedValues actual = session_of(model_, options_).run(inputs_);
      for (const auto& [name, value] : expected_) {
        std::string problem = difference_by_size(actual.at(name), value, tolerance_);
        if (problem.empty()) continue;
        failures.push_back(first_difference(pass, {std::string(pass), "", name, problem}));
        return;
      }
    } catch (const Error& error) {
      failures.push_back({std::string(pass), error.node(), error.tensor(), error.what()});
      return;
    }
    before_ = model_.clone();
  }

 private:
  // The first value in the order of the nodes that both models have and that differs.
  VerifyFailure first_difference(std::string_view pass, VerifyFailure otherwise) const {
    std::unordered_map<std::string_view, const ir::Value*> known;
    for (const ir::Value& value : before_->graph->values()) {
      if (value.producer()) known.emplace(value.name, &value);
    }
    std::vector<std::string> common;
    std::vector<const ir::Value*> in_order;
    for (const ir::Node& node : model_.graph->nodes()) {
      for (const ir::Value* value : node.outputs()) {
        if (!value || !known.count(value->name) || !value->type.is_tensor()) continue;
        common.push_back(value->name);
        in_order.push_back(value);
      }
    }
    NamedValues expected = session_of(*before_, options_, common).run(inputs_);
    NamedValues actual = session_of(model_, options_, common).run(inputs_);
    for (const ir::Value* value : in_order) {
      auto a = actual.find(value->name), e = expected.find(value->name);
      if (a == actual.end() || e == expected.end()) continue;
      std::string problem = difference_by_size(a->second, e->second, tolerance_);
      if (!problem.empty()) return {std::string(pass), value->producer()->describe(), value->name, problem};
    }
    return otherwise;
  }

  const ir::Model& model_;
  const OptimizeOptions& options_;
  const NamedValues& inputs_;
  Tolerance tolerance_;
  std::unique_ptr<ir::Model> before_;
  NamedValues expected_;
};

}  // namespace

OptimizedModel optimize(const std::filesystem::path& path, const OptimizeOptions& options) {
  OptimizedModel result;
  result.implementation = std::make_shared<OptimizedModel::Implementation>();
  std::map<std::string, OperatorChange> changes;
  std::unique_ptr<ir::Model>& model = result.implementation->model;
  model = load_lifted(path, options, result.notes);
  result.nodes_before = static_cast<int64_t>(ir::count_nodes(*model->graph));
  count(*model->graph, changes, &OperatorChange::before);
  const auto start = std::chrono::steady_clock::now();
  OptimizerOptions how = optimizer_options(options);
  leave_out_blocked_layout(*model, how, result.notes);
  result.rewrites = passes::optimize(*model->graph, how);
  result.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  result.nodes_after = static_cast<int64_t>(ir::count_nodes(*model->graph));
  count(*model->graph, changes, &OperatorChange::after);
  for (auto& [name, change] : changes) {
    change.name = name;
    result.operators.push_back(change);
  }
  std::ranges::stable_sort(result.operators, std::greater(),
                           [](const OperatorChange& change) { return std::abs(change.before - change.after); });
  return result;
}

void OptimizedModel::save(const std::filesystem::path& path) {
  ir::Model& model = *implementation->model;
  passes::infer_types(*model.graph);
  passes::lower_to_imported_opsets(model);
  onnx::save_model(model, path);
}

std::vector<VerifyFailure> verify_optimization(const std::filesystem::path& path, const OptimizeOptions& options,
                                               const NamedValues& inputs, const Tolerance& tolerance) {
  std::vector<std::string> notes;
  std::unique_ptr<ir::Model> model = load_lifted(path, options, notes);
  passes::infer_types(*model->graph);
  Verifier verifier(*model, options, inputs, tolerance);
  OptimizerOptions how = optimizer_options(options);
  how.verify = true;
  how.after_pass = [&](std::string_view pass, const ir::Graph&) { verifier.after_pass(pass); };
  passes::optimize(*model->graph, how);
  return verifier.failures;
}

}  // namespace tenon::tools

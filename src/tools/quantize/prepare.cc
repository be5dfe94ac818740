#include "tools/quantize/prepare.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <set>

#include "ir/unique_names.h"
#include "ir/verify.h"
#include "ir/visit.h"
#include "passes/constants.h"
#include "passes/infer.h"
#include "passes/lift.h"
#include "passes/lower.h"
#include "passes/optimizer.h"
#include "tools/constant_evaluator.h"

namespace tenon::tools {
namespace {

constexpr int64_t initializers_alone = 4;  // the IR version from which on they need not be inputs

void free_initializers(ir::Model& model) {
  if (model.ir_version >= initializers_alone) return;
  const std::vector<ir::Value*> inputs = model.graph->inputs();
  for (ir::Value* input : inputs) {
    if (input->is_initializer()) model.graph->remove_input(*input);
  }
  model.ir_version = initializers_alone;
}

void inline_calls(ir::Model& model) {
  if (model.functions.empty()) return;
  passes::OpsetVersions versions;
  for (const auto& [domain, version] : model.opset_imports.entries())
    versions[std::string(ir::canonical_domain(domain))] = version;
  passes::lift_to_opsets(model, versions);
  passes::inline_functions(model);
}

bool has_operator(const ir::Graph& graph, std::string_view op) {
  return std::ranges::any_of(graph.nodes(),
                             [&](const ir::Node& node) { return node.domain.empty() && node.op_type == op; });
}

// Whether a value follows from constants alone. Long chains are not followed to their end.
bool is_constant(const ir::Value* value, int depth = 0) {
  constexpr int deepest = 16;
  if (!value || depth > deepest) return false;
  if (value->is_fixed()) return true;
  const ir::Node* maker = value->producer();
  return maker && maker->input_count() > 0 && maker->op_type != "DequantizeLinear" &&
         std::ranges::all_of(maker->inputs(),
                             [&](const ir::Value* input) { return !input || is_constant(input, depth + 1); });
}

// Whether a product's weights are the result of arithmetic on constants.
bool has_computed_weights(const ir::Graph& graph) {
  static constexpr std::array products = {"Conv", "Gemm", "MatMul"};
  return std::ranges::any_of(graph.nodes(), [](const ir::Node& node) {
    const bool is_product = node.domain.empty() && std::ranges::find(products, node.op_type) != products.end();
    const ir::Node* maker = is_product && node.input(1) ? node.input(1)->producer() : nullptr;
    return maker && maker->op_type != "Transpose" && is_constant(node.input(1));
  });
}

// Through the optimiser's own pass, on the newest operators and back.
std::unique_ptr<ir::Model> with_plain_weights(const ir::Model& model, bool fold_constants) {
  std::unique_ptr<ir::Model> copy = model.clone();
  passes::lift_to_newest_opset(*copy);
  passes::OptimizerOptions options;
  options.level = OptimizationLevel::basic;
  options.evaluate = constant_evaluator();
  for (const OptimizationPass& pass : optimization_passes()) {
    static constexpr std::array wanted = {"batch-norm", "dead-code", "identity"};
    const bool is_wanted = std::ranges::find(wanted, pass.name) != wanted.end();
    if (!is_wanted && !(fold_constants && pass.name == "fold-constants")) options.disabled.emplace_back(pass.name);
  }
  passes::optimize(*copy->graph, options);
  passes::infer_types(*copy->graph);
  passes::lower_to_imported_opsets(*copy);
  return copy;
}

// So that reports and times can tell nodes apart.
void name_nodes(ir::Model& model) {
  std::set<std::string> names;
  ir::for_each_graph(*model.graph, [&](ir::Graph& graph) {
    for (ir::Node& node : graph.nodes()) {
      const std::string stem = node.name.empty() ? node.op_type : node.name;
      if (node.name.empty()) node.name = stem + "_0";
      for (int64_t i = 1; !names.insert(node.name).second; ++i) node.name = fmt::format("{}_{}", stem, i);
    }
  });
}

}  // namespace

OnnxModel prepare_to_quantize(const OnnxModel& model, std::vector<std::string>& notes) {
  std::unique_ptr<ir::Model> copy = model.ir().clone();
  free_initializers(*copy);
  inline_calls(*copy);
  passes::constants_to_initializers(*copy->graph);
  ir::verify_and_sort(*copy->graph);
  // What BatchNormalization makes of weights is computed, too.
  const bool computed = has_computed_weights(*copy->graph) || has_operator(*copy->graph, "BatchNormalization");
  if (computed || has_operator(*copy->graph, "Identity")) {
    try {
      copy = with_plain_weights(*copy, computed);
      ir::verify_and_sort(*copy->graph);
    } catch (const Error& error) {
      notes.push_back(fmt::format("what is beside weights stays there: {}", error.what()));
    }
  }
  ir::make_names_unique(*copy);
  name_nodes(*copy);
  return model.with(std::move(copy));
}

}  // namespace tenon::tools

#include "tenon/tools/convert.h"

#include <fmt/core.h>

#include <algorithm>
#include <set>
#include <unordered_map>

#include "base/fail.h"
#include "ir/count.h"
#include "ir/format_versions.h"
#include "ir/unique_names.h"
#include "ir/verify.h"
#include "ir/visit.h"
#include "ops/inference.h"
#include "ops/operator.h"
#include "ops/type_history.h"
#include "passes/constants.h"
#include "passes/infer.h"
#include "passes/lift.h"
#include "passes/lower.h"
#include "passes/optimizer.h"
#include "session/custom_operator.h"
#include "tools/constant_evaluator.h"

namespace tenon::tools {
namespace {

// The versions of the format and of ai.onnx that were released together.
struct Release {
  int64_t ir_version, opset;
};
constexpr Release releases[] = {{3, 8},  {4, 9},   {5, 10},  {6, 11},  {7, 14},  {8, 18},
                                {9, 20}, {10, 22}, {11, 23}, {12, 24}, {13, 27}, {14, 28}};
constexpr int64_t oldest_opset = 7, oldest_ir_version = 3;

int64_t ir_version_of(int64_t opset) {
  auto found = std::ranges::find_if(releases, [&](const Release& release) { return opset <= release.opset; });
  return found == std::end(releases) ? ir::newest_ir_version : found->ir_version;
}

std::string domain_name(std::string_view domain) { return domain.empty() ? "ai.onnx" : std::string(domain); }

void check(const ConvertOptions& options) {
  for (const auto& [domain, version] : options.opsets) {
    const int64_t newest = ops::newest_opset_of(ir::canonical_domain(domain));
    if (newest == 0)
      throw Error(ErrorCode::invalid_argument,
                  fmt::format("there are no versions of domain '{}' to convert to", domain),
                  "ai.onnx and ai.onnx.ml can be converted");
    const int64_t oldest = ir::canonical_domain(domain).empty() ? oldest_opset : 1;
    if (version < oldest || version > newest)
      fail(ErrorCode::invalid_argument, "opset {} of {} is not one to convert to: {} to {} are", version,
           domain_name(domain), oldest, newest);
  }
  if (options.ir_version != 0 && (options.ir_version < oldest_ir_version || options.ir_version > ir::newest_ir_version))
    fail(ErrorCode::invalid_argument, "IR version {} is not one to convert to: {} to {} are", options.ir_version,
         oldest_ir_version, ir::newest_ir_version);
}

uint64_t highest_serial(ir::Graph& graph) {
  uint64_t highest = 0;
  for_each_graph(graph, [&](ir::Graph& part) {
    for (const ir::Node& node : part.nodes()) highest = std::max(highest, node.serial());
  });
  return highest;
}

struct NodeLabels {
  std::string name, doc_string;
  ir::StringPairs metadata;
};

class Converter {
 public:
  // With `only_what_runs`, branches of which is known that they do not run are left out: their types may not be known.
  Converter(const OnnxModel& source, const ConvertOptions& options, bool only_what_runs = false)
      : source_(source), options_(options), only_what_runs_(only_what_runs), model_(source.ir().clone()) {}

  Conversion run() {
    result_.nodes_before = static_cast<int64_t>(ir::count_nodes(*model_->graph));
    for (const auto& [domain, version] : options_.opsets) {
      const int64_t imported = model_->opset_imports.version(domain);
      if (imported == 0) continue;  // nothing of it is in the model
      if (version > imported) up_[domain] = version;
      if (version < imported) down_[domain] = version;
    }
    if (!up_.empty()) passes::lift_to_opsets(*model_, up_, custom_operators());
    set_ir_version();
    if (!down_.empty()) go_down();
    if (!result_.blockers.empty()) return std::move(result_);
    if (model_->ir_version < ir::functions_exist && !model_->functions.empty()) inline_functions();
    if (model_->ir_version < ir::initializers_alone) list_initializers_as_inputs(*model_->graph);
    ir::make_names_unique(*model_);
    ir::make_node_names_unique(*model_);
    result_.nodes_after = static_cast<int64_t>(ir::count_nodes(*model_->graph));
    result_.model = source_.with(std::move(model_));
    return std::move(result_);
  }

 private:
  ops::CustomOperatorList custom_operators() const {
    return list_custom_operators(options_.custom_operators, options_.custom_operator_libraries);
  }

  void set_ir_version() {
    const int64_t before = model_->ir_version;
    if (options_.ir_version > 0)
      model_->ir_version = options_.ir_version;
    else if (auto opset = down_.find(""); opset != down_.end())
      model_->ir_version = std::min(before, ir_version_of(opset->second));
    if (model_->ir_version != before)
      result_.notes.push_back(fmt::format("IR version {} instead of {}", model_->ir_version, before));
  }

  void inline_functions() {
    result_.notes.push_back(fmt::format("calls of the model's {} became their bodies",
                                        model_->functions.size() == 1 ? "function" : "functions"));
    passes::inline_functions(*model_);
    model_->functions.clear();
  }

  void go_down() {
    remember_values();
    lift();
    if (!model_->functions.empty()) inline_functions();
    ir::Graph& graph = *model_->graph;
    remember_constant_nodes(graph);
    passes::constants_to_initializers(graph);
    ir::verify_and_sort(graph);
    passes::infer_types(graph);
    if (only_what_runs_) leave_out_branches(graph);
    for (const auto& [domain, version] : down_) model_->opset_imports.set(domain, version);
    passes::LowerOptions how;
    how.as_functions = false;
    how.simplify = [&, last = highest_serial(graph)] { simplify(graph, last); };
    for (passes::Blocker& blocker : passes::lower_nodes(*model_, how))
      result_.blockers.push_back({std::move(blocker.node), std::move(blocker.op_type), std::move(blocker.reason)});
    if (!result_.blockers.empty()) return;
    for_each_graph(graph, [&](ir::Graph& part) {
      forget_inferred_types(part);
      remove_what_nothing_reads(part);
      restore_constant_nodes(part);
    });
    passes::make_names_plain(*model_);
  }

  // Operators of domains that Tenon does not know stay as they are; of the others, the error is for the user.
  void lift() {
    std::vector<passes::LiftProblem> problems;
    for (std::string& note : passes::lift_to_newest_opset(*model_, custom_operators(), &problems))
      result_.notes.push_back(std::move(note));
    std::set<std::string> foreign;
    for (const passes::LiftProblem& problem : problems) {
      if (ops::operators().knows_domain(problem.domain)) throw Error(problem.error).at_node(problem.node);
      foreign.insert(problem.domain);
    }
    for (const std::string& domain : foreign)
      result_.notes.push_back(fmt::format("operators of '{}', which Tenon does not know, stay as they are", domain));
  }

  void leave_out_branches(ir::Graph& graph) {
    run_passes(graph, {"constant-if", "fold-constants", "dead-code"}, nullptr);
    result_.notes.emplace_back("branches that never run were left out");
  }

  static void run_passes(ir::Graph& graph, const std::vector<std::string_view>& names,
                         std::function<bool(const ir::Node&)> may_change) {
    passes::OptimizerOptions how;
    how.level = OptimizationLevel::basic;
    how.evaluate = constant_evaluator();
    how.may_change = std::move(may_change);
    for (const OptimizationPass& pass : optimization_passes()) {
      if (std::ranges::find(names, pass.name) == names.end()) how.disabled.emplace_back(pass.name);
    }
    passes::optimize(graph, how);
    passes::infer_types(graph);
  }

  // Nodes that were added compute sizes that are known, and the like; those of the model stay as they are.
  static void simplify(ir::Graph& graph, uint64_t last_of_model) {
    run_passes(graph, {"identity", "fold-constants", "no-op", "cast"},
               [&](const ir::Node& node) { return node.serial() > last_of_model; });
  }

  // What the model says of a value: inference finds more, which is not written.
  struct Known {
    std::string name;
    ir::Type type;
    bool is_read;
  };

  void remember_values() {
    for_each_graph(*model_->graph, [&](ir::Graph& graph) {
      for (const ir::Value& value : graph.values()) {
        known_.emplace(&value, Known{value.name, value.type, !value.users().empty()});
      }
    });
  }

  // Values that were added may be where others have been.
  const Known* find_known(const ir::Value& value) const {
    auto found = known_.find(&value);
    return found != known_.end() && found->second.name == value.name ? &found->second : nullptr;
  }

  void forget_inferred_types(ir::Graph& graph) const {
    for (ir::Value& value : graph.values()) {
      if (const Known* known = find_known(value))
        value.type = known->type;
      else
        value.value_info_position = -1;
    }
  }

  void remove_what_nothing_reads(ir::Graph& graph) const {
    graph.remove_unused_initializers([&](const ir::Value& value) {
      const Known* known = find_known(value);
      return !value.is_graph_input() && (!known || known->is_read) &&
             std::ranges::find(graph.outputs(), &value) == graph.outputs().end();
    });
  }

  void remember_constant_nodes(ir::Graph& whole) {
    for_each_graph(whole, [&](ir::Graph& graph) {
      for (const ir::Node& node : graph.nodes()) {
        if (node.op_type == "Constant" && node.domain.empty() && node.output(0))
          constant_nodes_.emplace(node.output(0), NodeLabels{node.name, node.doc_string, node.metadata});
      }
    });
  }

  // They were initializers in between, as the adapters want them.
  void restore_constant_nodes(ir::Graph& graph) const {
    ir::Node* first = graph.nodes().empty() ? nullptr : &graph.nodes().front();
    for (ir::Value* value : std::vector(graph.initializers())) {
      auto found = constant_nodes_.find(value);
      if (found == constant_nodes_.end() || !find_known(*value)) continue;
      const Tensor tensor = value->constant()->tensor;
      if (!constant_may_be(tensor.type())) continue;
      graph.remove_initializer(*value);
      ir::Node& node = graph.add_node("Constant", "", first);
      node.name = found->second.name;
      node.doc_string = found->second.doc_string;
      node.metadata = found->second.metadata;
      node.set_attribute({"value", tensor});
      node.add_output(value);
    }
  }

  // Constant nodes had floats only in older versions.
  bool constant_may_be(ElementType type) const {
    const ops::Operator& constant = *ops::operators().find(ops::ai_onnx, "Constant");
    return ops::allows_output(constant, constant.version_at(model_->opset_imports.version("")), 0,
                              ir::Type::tensor(type));
  }

  // Only inputs can be initializers before IR version 4, and subgraphs have none that are free: those of the main graph
  // take the place of theirs.
  static void move_initializers_out(ir::Graph& whole) {
    for_each_graph(whole, [&](ir::Graph& graph) {
      if (&graph == &whole) return;
      for (ir::Value* value : std::vector(graph.initializers())) {
        if (value->is_graph_input() || !value->constant()) continue;
        ir::Value& outside = whole.add_constant(value->constant()->tensor, value->name);
        ir::Node* first = graph.nodes().empty() ? nullptr : &graph.nodes().front();
        const bool is_output = std::ranges::find(graph.outputs(), value) != graph.outputs().end();
        graph.remove_initializer(*value);
        if (is_output) {
          ir::Node& copy = graph.add_node("Identity", "", first);
          copy.add_input(&outside);
          copy.add_output(value);
        } else {
          graph.replace_uses(*value, outside);
        }
      }
    });
  }

  static void list_initializers_as_inputs(ir::Graph& graph) {
    move_initializers_out(graph);
    for (ir::Value* value : graph.initializers()) {
      if (value->constant() && !value->type.known()) {
        const Tensor& tensor = value->constant()->tensor;
        value->type = ir::Type::tensor(tensor.type(), ops::Fact::of(tensor).type.shape);
      }
      if (!value->is_graph_input()) graph.add_input(*value);
    }
  }

  const OnnxModel& source_;
  const ConvertOptions& options_;
  bool only_what_runs_;
  std::unique_ptr<ir::Model> model_;
  std::map<std::string, int64_t> up_, down_;
  std::unordered_map<const ir::Value*, Known> known_;
  std::unordered_map<const ir::Value*, NodeLabels> constant_nodes_;  // by output
  Conversion result_;
};

}  // namespace

const OnnxModel& Conversion::require() const {
  if (model) return *model;
  std::string text = blockers.size() == 1 ? "a node cannot be converted:"
                                          : fmt::format("{} nodes cannot be converted:", blockers.size());
  for (const ConversionBlocker& blocker : blockers) text += fmt::format("\n  {}: {}", blocker.node, blocker.reason);
  throw Error(ErrorCode::unsupported, text);
}

Conversion convert(const OnnxModel& model, const ConvertOptions& options) {
  check(options);
  Conversion conversion = Converter(model, options).run();
  if (conversion.blockers.empty()) return conversion;
  Conversion without_branches = Converter(model, options, /*only_what_runs=*/true).run();
  return without_branches.blockers.empty() ? std::move(without_branches) : std::move(conversion);
}

}  // namespace tenon::tools

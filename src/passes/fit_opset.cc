#include "passes/fit_opset.h"

#include <fmt/core.h>

#include <algorithm>

#include "ir/count.h"
#include "ops/older_forms.h"
#include "ops/operator.h"
#include "ops/type_history.h"
#include "passes/fit_types.h"
#include "passes/infer.h"
#include "passes/lower_node.h"

namespace tenon::passes {
namespace {

// A form may use operators that need another form themselves. None goes this deep, or makes so many nodes of one.
constexpr int most_sweeps = 20;
constexpr size_t most_nodes_of_one = 2000;

class Fitter {
 public:
  Fitter(const ir::OpsetImports& opsets, const std::function<bool(const ir::Node&)>& leave)
      : opsets_(opsets), leave_(leave) {}

  // Goes through the graph once; says whether anything changed.
  bool sweep(ir::Graph& graph) {
    changed_ = false;
    blockers.clear();
    visit(graph);
    return changed_;
  }

  std::vector<Blocker> blockers;

 private:
  void visit(ir::Graph& graph) {
    std::vector<ir::Node*> nodes;
    for (ir::Node& node : graph.nodes()) nodes.push_back(&node);
    for (ir::Node* node : nodes) {
      for (const ir::Attribute& attribute : node->attributes)
        attribute.for_each_graph([&](ir::Graph& subgraph) { visit(subgraph); });
      fit(*node);
    }
  }

  void fit(ir::Node& node) {
    const ops::Operator* op = ops::operator_of(node);
    const int64_t opset = opsets_.version(node.domain);
    if (!op || node.custom_operator || leave_(node)) return;
    const int version = version_to_write(*op, node, opset);
    std::string reason = version > 0 ? why_not_lower(node, *op, version) : "";
    if (version > 0 && reason.empty()) {
      // What the file has in this version stays, be it valid or not.
      if (was_of_version(*op, node, version)) return;
      const Fit types = fit_types(node, *op, version, opset, reason);
      changed_ |= types == Fit::rewritten;
      if (types != Fit::blocked) return;
    }
    const std::string text = node.describe(), name = op->name;
    const std::string why_not = ops::write_for_version(node, version > 0 ? version : opset);
    if (why_not.empty()) {
      changed_ = true;
      return;
    }
    if (std::string type = missing_type(node, *op, version, opset); !type.empty()) reason = type;
    blockers.push_back({text, name, explain(*op, version, opset, reason, why_not)});
  }

  // A type that the opset does not have is what to say first; "" if it is something else.
  static std::string missing_type(ir::Node& node, const ops::Operator& op, int version, int64_t opset) {
    std::string reason;
    if (version > 0) fit_types(node, op, version, opset, reason);
    return is_about_opset_types(reason) ? reason : "";
  }

  static bool is_about_opset_types(const std::string& reason) {
    return reason.find("does not have the type") != std::string::npos;
  }

  static std::string explain(const ops::Operator& op, int version, int64_t opset, const std::string& reason,
                             const std::string& why_not) {
    if (version == 0) {
      const std::string text = fmt::format("{} came with opset {}", op.name, first_official(op));
      return has_form(op) ? fmt::format("{}, and {}", text, why_not) : text + ", and older operators cannot express it";
    }
    const std::string text = fmt::format("{} has no expression in opset {}: {}", op.name, opset, reason);
    // A form that is "… already" is not what is missing, and no form has types that the opset does not have.
    const bool says_all = why_not.ends_with(" already") || is_about_opset_types(reason);
    return has_form(op) && !says_all ? fmt::format("{}; {}", text, why_not) : text;
  }

  static bool has_form(const ops::Operator& op) {
    return op.decomposition || (op.domain.empty() && !ops::older_forms().of(op.name).empty());
  }

  static int first_official(const ops::Operator& op) {
    auto found = std::ranges::find_if(op.versions, [&](int version) { return ops::is_in_onnx(op, version); });
    return found == op.versions.end() ? op.versions.front() : *found;
  }

  const ir::OpsetImports& opsets_;
  const std::function<bool(const ir::Node&)>& leave_;
  bool changed_ = false;
};

}  // namespace

std::vector<Blocker> fit_opsets(ir::Graph& graph, const ir::OpsetImports& opsets,
                                const std::function<bool(const ir::Node&)>& leave,
                                const std::function<void()>& simplify) {
  Fitter fitter(opsets, leave);
  const size_t most_nodes = most_nodes_of_one * ir::count_nodes(graph);
  for (int i = 0; fitter.sweep(graph); ++i) {
    if (i == most_sweeps || ir::count_nodes(graph) > most_nodes)
      return {{"the model", "", "older operators take too many nodes to express it"}};
    graph.sort_topologically();
    infer_types(graph);
    if (simplify) simplify();
  }
  return std::move(fitter.blockers);
}

}  // namespace tenon::passes

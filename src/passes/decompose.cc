#include "passes/decompose.h"

#include <algorithm>

#include "base/fail.h"
#include "ops/decomposition.h"
#include "ops/operator.h"
#include "passes/infer.h"

namespace tenon::passes {
namespace {

class Decomposer {
 public:
  explicit Decomposer(const std::function<bool(const ir::Node&)>& wanted) : wanted_(wanted) {}

  // Goes through the graph once; says whether anything changed.
  bool run(ir::Graph& graph) {
    changed_ = false;
    notes.clear();
    visit(graph);
    return changed_;
  }

  std::vector<std::string> notes;

 private:
  void visit(ir::Graph& graph) {
    bool changed_here = false;
    std::vector<ir::Node*> nodes;
    for (ir::Node& node : graph.nodes()) nodes.push_back(&node);
    for (ir::Node* node : nodes) {
      for (const ir::Attribute& attribute : node->attributes) {
        attribute.for_each_graph([&](ir::Graph& subgraph) { visit(subgraph); });
      }
      const ops::Operator* op = ops::operator_of(*node);
      if (!op || !op->decomposition || !wanted_(*node)) continue;
      std::string reason = ops::decompose(*node);
      if (reason.empty())
        changed_here = true;
      else
        notes.push_back(fmt::format("{}: {} is not decomposed, {}", node->describe(), node->op_type, reason));
    }
    // What takes a Gradient's place reads tensors that the node itself did not.
    if (changed_here) graph.sort_topologically();
    changed_ |= changed_here;
  }

  const std::function<bool(const ir::Node&)>& wanted_;
  bool changed_ = false;
};

}  // namespace

std::vector<std::string> decompose(ir::Graph& graph, const std::function<bool(const ir::Node&)>& wanted) {
  auto all = ops::operators().all();
  auto deepest = std::ranges::count_if(all, [](const ops::Operator* op) { return op->decomposition != nullptr; });
  Decomposer decomposer(wanted);
  for (int64_t depth = 0; decomposer.run(graph); ++depth) {
    TENON_CHECK(depth < deepest);  // else a decomposition contains its own operator
    infer_types(graph);
  }
  return std::move(decomposer.notes);
}

}  // namespace tenon::passes

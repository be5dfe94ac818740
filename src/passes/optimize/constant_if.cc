#include "ir/copy_nodes.h"
#include "passes/optimize/passes.h"

namespace tenon::passes {

void inline_constant_if(Editor& editor, ir::Node& node) {
  if (node.op_type != "If" || !node.domain.empty()) return;
  const Tensor* condition = Editor::constant(node.input(0));
  if (!condition || condition->elements() != 1) return;
  const ir::Graph* branch = node.graph_attribute(condition->data<bool>()[0] ? "then_branch" : "else_branch");
  if (!branch || branch->outputs().size() < node.output_count()) return;
  editor.rewrite(node, [&](Patch& patch) {
    ir::Twins twins;
    for (const ir::Value* value : branch->initializers()) {
      if (value->constant()) twins[value] = patch.constant(value->constant()->tensor);
    }
    for (const ir::Node& inner : branch->nodes()) patch.add_copy(inner, twins);
    for (size_t i = 0; i < node.output_count(); ++i) {
      if (!node.output(i)) continue;
      ir::Value* result = ir::twin_of(twins, branch->outputs()[i]);
      // An Identity for what the branch only hands on: an outer value, or one that it returns twice.
      patch.replace(*node.output(i), *patch.add("Identity", {result}));
    }
  });
}

}  // namespace tenon::passes

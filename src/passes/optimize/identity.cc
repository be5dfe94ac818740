#include "passes/match.h"
#include "passes/optimize/passes.h"

namespace tenon::passes {
namespace {

bool is_identity(const ir::Node& node) {
  if (node.op_type == "Identity") return true;
  if (node.op_type != "Dropout" || node.output(1)) return false;
  const Tensor* training = Editor::constant(node.input(2));
  return !node.input(2) || (training && training->elements() == 1 && !training->data<bool>()[0]);
}

}  // namespace

void remove_identities(Editor& editor, ir::Node& node) {
  if (!node.domain.empty() || !node.input(0) || !node.output(0) || !is_identity(node)) return;
  ir::Value &input = *node.input(0), &output = *node.output(0);
  if (!editor.can_replace(output, input)) return;
  editor.rewrite(node, [&](Patch& patch) { patch.replace(output, input); });
}

}  // namespace tenon::passes

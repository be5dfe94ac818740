#include "passes/match.h"
#include "passes/optimize/passes.h"

namespace tenon::passes {

void remove_identities(Editor& editor, ir::Node& node) {
  if (node.op_type != "Identity" || !node.domain.empty() || !node.input(0) || !node.output(0)) return;
  ir::Value &input = *node.input(0), &output = *node.output(0);
  if (!editor.can_replace(output, input)) return;
  editor.rewrite(node, [&](Patch& patch) { patch.replace(output, input); });
}

}  // namespace tenon::passes

#include "passes/match.h"
#include "passes/optimize/passes.h"

namespace tenon::passes {

// Before opset 13 a softmax went over all axes from one on, and it is lifted as one of the flattened input. Where that
// was the last axis anyway, nothing needs flattening.
void remove_flatten_around_softmax(Editor& editor, ir::Node& node) {
  static const Pattern x = any(), target = any(), flat = op("Flatten", {x});
  static const Pattern softmax = either(op("Softmax", {flat}), either(op("LogSoftmax", {flat}), op("Hardmax", {flat})));
  static const Pattern back = op("Reshape", {softmax, target});
  if (node.op_type != "Reshape") return;
  Match m = match(editor, back, node);
  if (!m || !editor.same_shape(m[x], node.output(0)) || !editor.values(m[target])) return;
  const int rank = editor.rank(m[x]);
  const int64_t from = m.node(flat).int_attribute("axis", 1), axis = m.node(softmax).int_attribute("axis", -1);
  if (rank < 1 || (from < 0 ? from + rank : from) != rank - 1 || (axis != -1 && axis != 1)) return;
  editor.rewrite(node, [&](Patch& patch) {
    patch.name_after(m.node(softmax));
    patch.replace(node, *patch.add(m.node(softmax).op_type, {m[x]}, {{"axis", -1}}));
  });
}

}  // namespace tenon::passes

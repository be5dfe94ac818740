#include "passes/match.h"
#include "passes/optimize/passes.h"

namespace tenon::passes {

// x @ w + b, of two matrices and a bias that does not add rows or columns.
void add_bias_to_gemm(Editor& editor, ir::Node& node) {
  static const Pattern x = any(), w = any(), b = constant(), product = op("MatMul", {x, w}), sum = product + b;
  if (node.op_type != "Add") return;
  Match m = match(editor, sum, node);
  if (!m || editor.rank(m[x]) != 2 || editor.rank(m[w]) != 2 || editor.rank(m[b]) > 2) return;
  if (!ops::types::floats.contains(editor.fact(*m[x]).type.element)) return;
  if (!editor.same_shape(node.output(0), m[product])) return;
  editor.rewrite(node, [&](Patch& patch) {
    patch.name_after(m.node(product));
    patch.replace(node, *patch.add("Gemm", {m[x], m[w], m[b]}));
  });
}

}  // namespace tenon::passes

#include <cmath>
#include <numbers>

#include "passes/match.h"
#include "passes/optimize/fusion.h"
#include "passes/optimize/passes.h"

namespace tenon::passes {
namespace {

// 0.5 * x * factor, multiplied in any order.
Pattern half_product(const Pattern& x, const Pattern& factor) {
  return either(either(x * factor * 0.5, x * 0.5 * factor), x * (factor * 0.5));
}

}  // namespace

// x * 0.5 * (1 + erf(x / sqrt(2)))
void fuse_gelu(Editor& editor, ir::Node& node) {
  static const Pattern x = any(), root = either(x / std::numbers::sqrt2, x * std::sqrt(0.5)),
                       gelu = half_product(x, op("Erf", {root}) + 1);
  if (node.op_type != "Mul") return;
  Match m = match(editor, gelu, node);
  if (!m || !is_float(editor, m[x])) return;
  editor.rewrite(node, [&](Patch& patch) { patch.replace(node, *patch.add("Gelu", {m[x]})); });
}

// x * 0.5 * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 * x^3)))
void fuse_tanh_gelu(Editor& editor, ir::Node& node) {
  static const double c = 0.044715, s = std::sqrt(2 / std::numbers::pi);
  static const Pattern x = any(), square = either(x * x, op("Pow", {x, 2})),
                       cube = either(op("Pow", {x, 3}), square * x), factored = either(square * c, x * c * x) + 1,
                       polynomial = either((x + cube * c) * s, either(x * s * factored, x * factored * s)),
                       gelu = half_product(x, op("Tanh", {polynomial}) + 1);
  if (node.op_type != "Mul") return;
  Match m = match(editor, gelu, node);
  if (!m || !is_float(editor, m[x])) return;
  editor.rewrite(node, [&](Patch& patch) {
    patch.replace(node, *patch.add("Gelu", {m[x]}, {{"approximate", std::string("tanh")}}));
  });
}

}  // namespace tenon::passes

#include "passes/match.h"
#include "passes/optimize/fusion.h"
#include "passes/optimize/passes.h"

namespace tenon::passes {
namespace {

bool is_near(float a, double b) { return std::abs(a - b) < 1e-5; }

}  // namespace

// x * sigmoid(alpha * x)
void fuse_swish(Editor& editor, ir::Node& node) {
  static const Pattern x = any(), alpha = constant(), scaled = x * alpha, argument = either(x, scaled),
                       swish = x * op("Sigmoid", {argument});
  if (node.op_type != "Mul") return;
  Match m = match(editor, swish, node);
  if (!m || !is_float(editor, m[x])) return;
  const bool has_alpha = m[scaled] != nullptr;
  if (has_alpha && !is_number(m[alpha])) return;
  const float factor = has_alpha ? static_cast<float>(*uniform_constant(m[alpha])) : 1.0f;
  editor.rewrite(node, [&](Patch& patch) { patch.replace(node, *patch.add("Swish", {m[x]}, {{"alpha", factor}})); });
}

// clip(x + 3, 0, 6) / 6 is HardSigmoid; x * HardSigmoid(x) is HardSwish.
void fuse_hard_swish(Editor& editor, ir::Node& node) {
  static const Pattern x = any(), relu6 = op("Clip", {x + 3, 0, 6}), sixth = either(relu6 / 6, relu6 * (1.0 / 6)),
                       product = x * relu6, from_clip = either(product / 6, product * (1.0 / 6)),
                       sigmoid = op("HardSigmoid", {x}), from_sigmoid = x * sigmoid;
  if (node.op_type != "Mul" && node.op_type != "Div") return;
  if (Match m = match(editor, from_clip, node); m && is_float(editor, m[x])) {
    editor.rewrite(node, [&](Patch& patch) { patch.replace(node, *patch.add("HardSwish", {m[x]})); });
    return;
  }
  if (Match m = match(editor, sixth, node); m && is_float(editor, m[x])) {
    editor.rewrite(node, [&](Patch& patch) {
      patch.replace(node, *patch.add("HardSigmoid", {m[x]}, {{"alpha", 1 / 6.0f}, {"beta", 0.5f}}));
    });
    return;
  }
  Match m = match(editor, from_sigmoid, node);
  if (!m || !is_near(m.node(sigmoid).float_attribute("alpha", 0.2f), 1.0 / 6) ||
      !is_near(m.node(sigmoid).float_attribute("beta", 0.5f), 0.5))
    return;
  editor.rewrite(node, [&](Patch& patch) { patch.replace(node, *patch.add("HardSwish", {m[x]})); });
}

// x * tanh(log(1 + exp(x)))
void fuse_mish(Editor& editor, ir::Node& node) {
  static const Pattern x = any(), mish = x * op("Tanh", {op("Softplus", {x})});
  if (node.op_type != "Mul") return;
  Match m = match(editor, mish, node);
  if (!m) return;
  editor.rewrite(node, [&](Patch& patch) { patch.replace(node, *patch.add("Mish", {m[x]})); });
}

}  // namespace tenon::passes

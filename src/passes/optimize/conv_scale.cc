#include "passes/match.h"
#include "passes/optimize/channels.h"
#include "passes/optimize/passes.h"

namespace tenon::passes {

// conv(x, w, b) * s is conv(x, w * s, b * s).
void scale_conv_weights(Editor& editor, ir::Node& node) {
  static const Pattern x = any(), w = constant(), b = maybe(), s = constant(),
                       conv = either(op("Conv", {x, w, b}), op("ConvTranspose", {x, w, b})), scaled = conv * s;
  if (node.op_type != "Mul") return;
  Match m = match(editor, scaled, node);
  if (!m) return;
  const ir::Node& old = m.node(conv);
  const int rank = Editor::constant(m[w])->rank();
  const int64_t channels = output_channels(old);
  if (channels == 0 || !is_per_channel(m[s], rank, 1, channels)) return;
  editor.rewrite(node, [&](Patch& patch) {
    patch.name_after(old);
    ir::Value* weights = patch.add("Mul", {m[w], on_axis(patch, m[s], rank, weight_axis(old))});
    ir::Value* bias = m[b] ? patch.add("Mul", {m[b], on_axis(patch, m[s], 1, 0)}) : nullptr;
    patch.replace(node, *patch.add_like(old, {m[x], weights, bias}).output(0));
  });
}

}  // namespace tenon::passes

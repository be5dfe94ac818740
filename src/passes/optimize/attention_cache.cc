#include "passes/match.h"
#include "passes/optimize/fusion.h"
#include "passes/optimize/passes.h"

namespace tenon::passes {
namespace {

// The Concat of cached keys or values [batch, heads, past, size] and new ones, when only this Attention reads it. It
// may be an output of the model too, as it is the cache of the next run.
ir::Node* cache_of(Editor& editor, const ir::Node& attention, size_t input) {
  ir::Value* value = attention.input(input);
  ir::Node* concat = producer(value, "Concat");
  if (!concat || concat->input_count() != 2 || value->users().size() != 1 || &concat->graph() != &attention.graph())
    return nullptr;
  const int64_t axis = concat->int_attribute("axis", 0);
  if (axis != 2 && axis != -2) return nullptr;
  return editor.rank(value) == 4 && editor.rank(concat->input(0)) == 4 && editor.rank(concat->input(1)) == 4 ? concat
                                                                                                             : nullptr;
}

}  // namespace

void fuse_attention_cache(Editor& editor, ir::Node& node) {
  if (node.op_type != "Attention" || !node.domain.empty() || node.output_count() != 1 || node.input_count() > 4) return;
  // Others, such as is_causal, mean something else when there is a past.
  if (node.attributes.size() != 1 || node.attributes[0].name != "scale") return;
  ir::Node *keys = cache_of(editor, node, 1), *values = cache_of(editor, node, 2);
  if (!keys || !values || keys == values || editor.rank(node.input(0)) != 4) return;
  // Attention has one length for both.
  const SymbolicShape &k = *editor.shape(keys->input(0)), &v = *editor.shape(values->input(0));
  if (k[2] != v[2] || k[2].has_unknown()) return;
  editor.rewrite(node, [&](Patch& patch) {
    ir::Value* mask = node.input_count() > 3 ? node.input(3) : nullptr;
    ir::Node& cached = patch.add_node(
        "Attention", {node.input(0), keys->input(1), values->input(1), mask, keys->input(0), values->input(0)},
        {{"scale", node.float_attribute("scale", 1)}}, 3);
    patch.replace(*node.output(0), *cached.output(0));
    patch.replace(*keys->output(0), *cached.output(1));
    patch.replace(*values->output(0), *cached.output(2));
  });
}

}  // namespace tenon::passes

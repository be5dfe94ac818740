#include <algorithm>

#include "passes/match.h"
#include "passes/optimize/fusion.h"
#include "passes/optimize/passes.h"

namespace tenon::passes {
namespace {

// What makes cosines or sines [batch, sequence, size] out of angles that come twice, [a, a]: nodes whose elements
// depend on one element of the node before, the last one first.
struct Doubled {
  ir::Value* angles = nullptr;
  std::vector<ir::Node*> steps;
};

Doubled doubled(ir::Value* value) {
  constexpr size_t most_steps = 8;
  Doubled result;
  while (result.steps.size() < most_steps) {
    if (ir::Node* concat = producer(value, "Concat")) {
      const int64_t axis = concat->int_attribute("axis", 0);
      if (concat->input_count() == 2 && concat->input(0) == concat->input(1) && (axis == -1 || axis == 2))
        result.angles = concat->input(0);
      return result;
    }
    ir::Node* node = value ? value->producer() : nullptr;
    if (!node || !node->domain.empty()) return result;
    const std::string& op = node->op_type;
    const bool scales = op == "Mul" && node->input(1) && is_number(node->input(1)) && !is_number(node->input(0));
    if (op != "Cos" && op != "Sin" && op != "Cast" && !scales) return result;
    result.steps.push_back(node);
    value = node->input(0);
  }
  return result;
}

// The cosines or sines of the angles alone, for every image of the batch.
ir::Value* cache_of(Patch& patch, Editor& editor, const Doubled& from, ir::Value* x) {
  ir::Value* value = from.angles;
  for (size_t i = from.steps.size(); i-- > 0;) {
    const ir::Node& step = *from.steps[i];
    value = patch.add_like(step, {value, step.input(1)}).output(0);
  }
  if ((*editor.shape(value))[0] == (*editor.shape(x))[0]) return value;
  ir::Value* batch = patch.add("Shape", {x}, {{"start", 0}, {"end", 1}});
  ir::Value* sizes = patch.add("Concat", {batch, patch.ints({1, 1})}, {{"axis", 0}});
  return patch.add("Expand", {value, sizes});
}

// The value [batch, sequence, size] that was given an axis for the heads and fits to x [batch, heads, sequence, size].
ir::Value* without_heads(Editor& editor, const ir::Value* value, const SymbolicShape& x) {
  ir::Node* node = value->producer();
  if (!node || !node->domain.empty() || (node->op_type != "Unsqueeze" && node->op_type != "Reshape")) return nullptr;
  const SymbolicShape *inner = editor.shape(node->input(0)), *own = editor.shape(value);
  if (!inner || !own || inner->size() != 3 || own->size() != 4 || (*own)[1] != Dim(1)) return nullptr;
  if ((*inner)[0] != (*own)[0] || (*inner)[1] != (*own)[2] || (*inner)[2] != (*own)[3]) return nullptr;
  const bool fits = ((*inner)[0] == x[0] || (*inner)[0] == Dim(1)) && (*inner)[1] == x[2] && (*inner)[2] == x[3];
  return fits ? node->input(0) : nullptr;
}

// Whether the value is the first or second half of x along its last axis, which is of that size.
bool is_half(Editor& editor, const ir::Value* value, const ir::Value* x, int64_t size, bool second) {
  if (ir::Node* split = producer(value, "Split")) {
    const int64_t axis = split->int_attribute("axis", 0);
    if (split->input(0) != x || split->output_count() != 2 || (axis != -1 && axis != 3)) return false;
    return split->output(second ? 1 : 0) == value && *editor.shape(split->output(0)) == *editor.shape(split->output(1));
  }
  ir::Node* slice = producer(value, "Slice");
  if (!slice || slice->input(0) != x) return false;
  auto number = [&](size_t i, int64_t otherwise) -> std::optional<int64_t> {
    if (!slice->input(i)) return otherwise;
    auto list = editor.ints(slice->input(i));
    return list && list->size() == 1 ? std::optional((*list)[0]) : std::nullopt;
  };
  const auto start = number(1, -1), end = number(2, -1), axis = number(3, 0), step = number(4, 1);
  if (!start || !end || (axis != 3 && axis != -1) || step != 1) return false;
  return second ? *start == size / 2 && *end >= size : *start == 0 && *end == size / 2;
}

}  // namespace

// x * cos + [-x2, x1] * sin with x = [x1, x2], where cos and sin have the same numbers for both halves.
void fuse_rotary_embedding(Editor& editor, ir::Node& node) {
  static const Pattern a = any(), b = any(), sine = any(), low = any(), high = any(),
                       turned = op("Concat", {op("Neg", {high}), low}), y = a * b + turned * sine;
  if (node.op_type != "Add" || editor.rank(node.output(0)) != 4) return;
  Match m = match(editor, y, node);
  if (!m || !m[low]->producer() || !is_float(editor, m[a])) return;
  ir::Value* x = m[low]->producer()->input(0);
  if (x != m[a] && x != m[b]) return;
  if (element_type(editor, x) == ElementType::float64 || !editor.same_shape(x, node.output(0))) return;
  const ir::Value* cosine = x == m[a] ? m[b] : m[a];
  if (const int64_t axis = m.node(turned).int_attribute("axis", 0); axis != -1 && axis != 3) return;
  const SymbolicShape& shape = *editor.shape(x);
  if (!shape[3].is_known() || shape[3].value() < 2 || shape[3].value() % 2 != 0) return;
  const int64_t size = shape[3].value();
  if (!is_half(editor, m[low], x, size, false) || !is_half(editor, m[high], x, size, true)) return;
  ir::Value *cosines = without_heads(editor, cosine, shape), *sines = without_heads(editor, m[sine], shape);
  if (!cosines || !sines) return;
  const Doubled from_cosine = doubled(cosines), from_sine = doubled(sines);
  if (editor.rank(from_cosine.angles) != 3 || editor.rank(from_sine.angles) != 3) return;
  editor.rewrite(node, [&](Patch& patch) {
    ir::Value* cos_cache = cache_of(patch, editor, from_cosine, x);
    ir::Value* sin_cache = cache_of(patch, editor, from_sine, x);
    patch.replace(node, *patch.add("RotaryEmbedding", {x, cos_cache, sin_cache}));
  });
}

}  // namespace tenon::passes

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <utility>

#include "base/checked.h"
#include "passes/match.h"
#include "passes/optimize/fusion.h"
#include "passes/optimize/passes.h"

namespace tenon::passes {
namespace {

// The value without factors of one number that it is multiplied with; they go into `scale`.
ir::Value* without_factor(ir::Value* value, double& scale) {
  if (ir::Node* mul = producer(value, "Mul")) {
    for (size_t i : {0, 1}) {
      if (!is_number(mul->input(i))) continue;
      scale *= *uniform_constant(mul->input(i));
      return mul->input(1 - i);
    }
  }
  if (ir::Node* div = producer(value, "Div"); div && is_number(div->input(1))) {
    scale /= *uniform_constant(div->input(1));
    return div->input(0);
  }
  return value;
}

// Keys [batch, heads, length, size]: a value, or one whose axes are to be permuted.
struct Keys {
  ir::Value* value = nullptr;
  std::vector<int64_t> permutation;
};

// What K is when `transposed` is K with its last two axes exchanged. Exporters write that as one Transpose, or flatten
// the leading axes before it and restore them afterwards.
Keys keys_of(Editor& editor, ir::Value* transposed) {
  if (ir::Node* transpose = producer(transposed, "Transpose")) {
    auto permutation = transpose->ints_attribute("perm");
    if (permutation.size() != 4) return {};
    std::swap(permutation[2], permutation[3]);
    if (std::ranges::is_sorted(permutation)) permutation.clear();
    return {transpose->input(0), permutation};
  }
  ir::Node* restored = producer(transposed, "Reshape");
  ir::Node* transpose = restored ? producer(restored->input(0), "Transpose") : nullptr;
  ir::Node* flattened = transpose ? producer(transpose->input(0), "Reshape") : nullptr;
  if (!flattened || transpose->ints_attribute("perm") != std::vector<int64_t>{0, 2, 1}) return {};
  ir::Value* k = flattened->input(0);
  const SymbolicShape *shape = editor.shape(k), *middle = editor.shape(flattened->output(0)),
                      *end = editor.shape(transposed);
  if (!shape || !middle || !end || shape->size() != 4 || middle->size() != 3) return {};
  const SymbolicShape &from = *shape, &to = *end;
  if (from[0] != to[0] || from[1] != to[1] || from[2] != to[3] || from[3] != to[2]) return {};
  if ((*middle)[1] != from[2] || (*middle)[2] != from[3]) return {};
  return {k, {}};
}

// Where heads of K or V are repeated for groups of query heads, the heads as they were before; else null. The pattern
// is [b, h, l, d] -> [b, h, 1, l, d] -> [b, h, times, l, d] -> [b, h * times, l, d].
ir::Value* without_repetition(Editor& editor, ir::Value* repeated) {
  ir::Node* joined = producer(repeated, "Reshape");
  ir::Node* expand = joined ? producer(joined->input(0), "Expand") : nullptr;
  ir::Node* split = expand ? expand->input(0)->producer() : nullptr;
  if (!split || !split->domain.empty() || (split->op_type != "Unsqueeze" && split->op_type != "Reshape"))
    return nullptr;
  ir::Value* heads = split->input(0);
  const SymbolicShape *from = editor.shape(heads), *alone = editor.shape(split->output(0)),
                      *many = editor.shape(expand->output(0)), *to = editor.shape(repeated);
  if (!from || !alone || !many || !to || from->size() != 4 || alone->size() != 5 || many->size() != 5) return nullptr;
  if (to->size() != 4 || (*alone)[2] != Dim(1)) return nullptr;
  const size_t axes[] = {0, 1, 3, 4};
  for (size_t i = 0; i < 4; ++i) {
    if ((*alone)[axes[i]] != (*from)[i] || (*many)[axes[i]] != (*from)[i]) return nullptr;
    if (i != 1 && (*to)[i] != (*from)[i]) return nullptr;
  }
  return heads;
}

// The mask as Attention takes it: true where a key is seen, or what is added to the scores.
ir::Value* mask_of(ir::Value* addend) {
  ir::Node* where = producer(addend, "Where");
  if (!where || !is_number(where->input(1)) || !is_number(where->input(2))) return addend;
  const double seen = *uniform_constant(where->input(1)), hidden = *uniform_constant(where->input(2));
  return seen == 0 && hidden == -std::numeric_limits<double>::infinity() ? where->input(0) : addend;
}

// Whether the largest score of a row is compared with what hides a key, as the decomposition of Attention has it.
bool is_of_hidden_rows(Editor& editor, const ir::Node& largest, const ir::Value* scores, const ir::Value* hidden) {
  if (largest.input(0) != scores) return false;
  const auto axes = editor.ints(largest.input(1));
  if (!axes || axes->size() != 1 || ((*axes)[0] != -1 && (*axes)[0] != 3)) return false;
  return is_number(hidden) && *uniform_constant(hidden) == -std::numeric_limits<double>::infinity();
}

// Whether adding a mask does not make the scores larger. A size that only a run knows is taken to fit, as it does in
// every model that means to mask; Attention refuses it otherwise.
bool mask_fits(Editor& editor, const ir::Value* mask, const ir::Value* scores) {
  const SymbolicShape *from = editor.shape(mask), *to = editor.shape(scores);
  if (!from || !to || from->empty() || from->size() > to->size()) return false;
  for (size_t i = 1; i <= from->size(); ++i) {
    const Dim &own = (*from)[from->size() - i], &wanted = (*to)[to->size() - i];
    if (own != Dim(1) && own != wanted && !own.has_unknown() && !wanted.has_unknown()) return false;
  }
  return true;
}

// Windows of images, whose scores are [images * windows, heads, rows, columns].
struct Windows {
  int64_t count = 0, heads = 0, rows = 0, columns = 0;
  int64_t size = 0, value_size = 0;  // of a head
};

// The windows, when the scores are split into [images, windows, heads, rows, columns], a mask is added that is the same
// for all images, and they are joined again.
std::optional<Windows> windows_of(Editor& editor, const ir::Value* scores, const ir::Value* split,
                                  const ir::Value* joined, const ir::Value* mask) {
  const SymbolicShape *from = editor.shape(scores), *to = editor.shape(split), *own = editor.shape(mask);
  if (!from || !to || !own || from->size() != 4 || to->size() != 5 || !editor.same_shape(scores, joined))
    return std::nullopt;
  for (size_t i = 1; i < 5; ++i) {
    if (!(*to)[i].is_known() || (*to)[i].value() < 1 || (i > 1 && (*to)[i] != (*from)[i - 1])) return std::nullopt;
  }
  for (size_t i = 1; i <= own->size(); ++i) {
    const Dim& size = (*own)[own->size() - i];
    if (i > 5 || (size != Dim(1) && (i == 5 || size != (*to)[5 - i]))) return std::nullopt;
  }
  return Windows{(*to)[1].value(), (*to)[2].value(), (*to)[3].value(), (*to)[4].value()};
}

// Windows and heads as one axis, so that the mask of a window is one of heads: [images, windows * heads, …].
ir::Value* with_windows_as_heads(Patch& patch, const Windows& windows, ir::Value* x, int64_t rows, int64_t columns) {
  return patch.add("Reshape", {x, patch.ints({-1, checked_mul(windows.count, windows.heads), rows, columns})});
}

// The mask of the windows plus the one that all have, if any.
ir::Value* mask_of_windows(Patch& patch, Editor& editor, const Windows& windows, ir::Value* mask, ir::Value* common) {
  if (common) mask = patch.add("Add", {mask, common});
  const std::vector<int64_t> sizes = {1, windows.count, windows.heads, windows.rows, windows.columns};
  const SymbolicShape wanted(sizes.begin(), sizes.end());
  if (*editor.shape(mask) != wanted) mask = patch.add("Expand", {mask, patch.ints(sizes)});
  return with_windows_as_heads(patch, windows, mask, windows.rows, windows.columns);
}

ir::Value* attention_of_windows(Patch& patch, const Windows& windows, ir::Value* q, ir::Value* k, ir::Value* v,
                                ir::Value* mask, float scale) {
  ir::Value* y = patch.add("Attention",
                           {with_windows_as_heads(patch, windows, q, windows.rows, windows.size),
                            with_windows_as_heads(patch, windows, k, windows.columns, windows.size),
                            with_windows_as_heads(patch, windows, v, windows.columns, windows.value_size), mask},
                           {{"scale", scale}});
  return patch.add("Reshape", {y, patch.ints({-1, windows.heads, windows.rows, windows.value_size})});
}

}  // namespace

// softmax(q @ k^T * scale + mask) @ v, or of windows of images, each with a mask of its own. Rows that the mask hides
// as a whole are 0 afterwards: exporters clear them, which Attention does too, or do not expect them, as they would be
// NaN.
void fuse_attention(Editor& editor, ir::Node& node) {
  static const Pattern q = any(), kt = any(), v = any(), mask = any(), factor = constant(), divisor = constant(),
                       product = op("MatMul", {q, kt}),
                       scaled = either(product, either(product * factor, product / divisor)), sum = scaled + mask,
                       window_mask = any(), split = op("Reshape", {either(sum, scaled), any()}),
                       windowed = op("Reshape", {split + window_mask, any()}),
                       softmax = op("Softmax", {either(windowed, either(sum, scaled))}),
                       largest = op("ReduceMax", {either(sum, scaled), constant()}).with("keepdims", 1, 1),
                       hidden = constant(), nothing_seen = op("Equal", {largest, hidden}),
                       cleared = op("Where", {either(op("IsNaN", {softmax}), nothing_seen), 0, softmax}),
                       attention = op("MatMul", {either(softmax, cleared), v});
  if (node.op_type != "MatMul") return;
  Match m = match(editor, attention, node);
  if (!m || !is_float(editor, m[q])) return;
  if (m[nothing_seen] && !is_of_hidden_rows(editor, m.node(largest), m.node(softmax).input(0), m[hidden])) return;
  if (const int64_t axis = m.node(softmax).int_attribute("axis", -1); axis != -1 && axis != 3) return;
  if (editor.rank(m[q]) != 4 || editor.rank(m[kt]) != 4 || editor.rank(m[v]) != 4) return;

  double scale = 1;
  if (m[factor]) {
    if (!is_number(m[factor])) return;
    scale = *uniform_constant(m[factor]);
  } else if (m[divisor]) {
    if (!is_number(m[divisor])) return;
    scale = 1 / *uniform_constant(m[divisor]);
  }
  if (m[mask] && !mask_fits(editor, m[mask], m[product])) return;
  ir::Value* queries = without_factor(m[q], scale);
  ir::Value* transposed = without_factor(m[kt], scale);
  Keys keys = keys_of(editor, transposed);
  if (!keys.value || editor.rank(queries) != 4) return;
  ir::Value* values = m[v];
  const SymbolicShape &q_shape = *editor.shape(m[q]), &kt_shape = *editor.shape(m[kt]), &v_shape = *editor.shape(m[v]);
  for (size_t axis : {0, 1}) {
    if (q_shape[axis] != kt_shape[axis] || q_shape[axis] != v_shape[axis]) return;
  }
  if (keys.permutation.empty() && !m[windowed]) {
    ir::Value *k_heads = without_repetition(editor, keys.value), *v_heads = without_repetition(editor, values);
    if (k_heads && v_heads && (*editor.shape(k_heads))[1] == (*editor.shape(v_heads))[1]) {
      keys.value = k_heads;
      values = v_heads;
    }
  }
  std::optional<Windows> windows;
  if (m[windowed]) {
    windows = windows_of(editor, m[product], m[split], m[windowed], m[window_mask]);
    if (!windows || !q_shape[3].is_known() || !v_shape[3].is_known()) return;
    if (m[mask] && editor.rank(m[mask]) == 4 && (*editor.shape(m[mask]))[0] != Dim(1)) return;
    windows->size = q_shape[3].value();
    windows->value_size = v_shape[3].value();
  }
  editor.rewrite(node, [&](Patch& patch) {
    ir::Value* k = keys.value;
    if (!keys.permutation.empty()) k = patch.add("Transpose", {k}, {{"perm", keys.permutation}});
    if (windows) {
      ir::Value* added = mask_of_windows(patch, editor, *windows, m[window_mask], m[mask]);
      return patch.replace(
          node, *attention_of_windows(patch, *windows, queries, k, values, added, static_cast<float>(scale)));
    }
    patch.replace(node, *patch.add("Attention", {queries, k, values, m[mask] ? mask_of(m[mask]) : nullptr},
                                   {{"scale", static_cast<float>(scale)}}));
  });
}

}  // namespace tenon::passes

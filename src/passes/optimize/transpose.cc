#include "passes/match.h"
#include "passes/optimize/passes.h"
#include "passes/optimize/permutation.h"

namespace tenon::passes {
namespace {

// The target of a Reshape that does what the permutation does when it moves axes of size 1 only; empty if it moves
// more, or if more than one size is symbolic.
std::vector<int64_t> reshape_instead(const SymbolicShape& input, const Permutation& p) {
  int64_t last = -1;
  std::vector<int64_t> target;
  bool symbolic = false, empty = false;
  for (int64_t axis : p) {
    const Dim& size = input[static_cast<size_t>(axis)];
    if (!size.is(1)) {
      if (axis < last) return {};
      last = axis;
    }
    if (!size.is_known() && symbolic) return {};
    symbolic |= !size.is_known();
    empty |= size.is(0);
    target.push_back(size.is_known() ? size.value() : -1);
  }
  return empty ? std::vector<int64_t>() : target;
}

}  // namespace

void merge_transposes(Editor& editor, ir::Node& node) {
  if (node.op_type != "Transpose" || !node.domain.empty() || !node.input(0) || !node.output(0)) return;
  ir::Value &input = *node.input(0), &output = *node.output(0);
  const int rank = editor.rank(&input);
  Permutation p = permutation_of(node, rank);
  if (rank < 1 || p.empty()) return;
  if (is_identity(p)) {
    if (editor.can_replace(output, input)) editor.rewrite(node, [&](Patch& patch) { patch.replace(output, input); });
    return;
  }
  if (const ir::Node* inner = producer(&input, "Transpose")) {
    Permutation first = permutation_of(*inner, rank);
    if (first.empty() || !inner->input(0)) return;
    const Permutation both = combined(first, p);
    if (is_identity(both) && !editor.can_replace(output, *inner->input(0))) return;
    editor.rewrite(node, [&](Patch& patch) {
      patch.replace(
          output, is_identity(both) ? *inner->input(0) : *patch.add("Transpose", {inner->input(0)}, {{"perm", both}}));
    });
    return;
  }
  std::vector<int64_t> target = reshape_instead(*editor.shape(&input), p);
  if (target.empty()) return;
  editor.rewrite(node, [&](Patch& patch) {
    patch.replace(output, *patch.add("Reshape", {&input, patch.ints(target)}));
  });
}

void transpose_in_gemm(Editor& editor, ir::Node& node) {
  if (node.op_type != "Gemm" || !node.domain.empty() || !node.output(0)) return;
  const ir::Node *a = producer(node.input(0), "Transpose"), *b = producer(node.input(1), "Transpose");
  auto swaps = [&](const ir::Node* transpose) {
    return transpose && transpose->input(0) && permutation_of(*transpose, 2) == Permutation{1, 0};
  };
  if (!swaps(a) && !swaps(b)) return;
  const int64_t trans_a = node.int_attribute("transA", 0), trans_b = node.int_attribute("transB", 0);
  editor.rewrite(node, [&](Patch& patch) {
    ir::Node& merged = patch.add_like(
        node, {swaps(a) ? a->input(0) : node.input(0), swaps(b) ? b->input(0) : node.input(1), node.input(2)},
        {{"transA", int64_t{(trans_a != 0) != swaps(a)}}, {"transB", int64_t{(trans_b != 0) != swaps(b)}}});
    patch.replace(node, *merged.output(0));
  });
}

}  // namespace tenon::passes

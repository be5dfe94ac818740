#include "passes/match.h"
#include "passes/optimize/passes.h"
#include "passes/optimize/permutation.h"

namespace tenon::passes {
namespace {

bool is_tenon(const ir::Node* node, std::string_view op) {
  return node && node->domain == ops::tenon_domain && node->op_type == op;
}

// FromBlocked and a Transpose to channels last.
void to_channels_last(Editor& editor, ir::Node& transpose) {
  const ir::Node* from = transpose.input(0) ? transpose.input(0)->producer() : nullptr;
  if (!is_tenon(from, "FromBlocked") || from->int_attribute("channels", 0) != 0 || !from->input(0)) return;
  const SymbolicShape* blocked = editor.shape(from->input(0));
  if (!blocked || blocked->size() != 5 || !(*blocked)[1].is_known() || !(*blocked)[4].is_known()) return;
  if (permutation_of(transpose, 4) != Permutation{0, 2, 3, 1} || !transpose.output(0)) return;
  const int64_t channels = (*blocked)[1].value() * (*blocked)[4].value();
  editor.rewrite(transpose, [&](Patch& patch) {
    ir::Value* pixels = patch.add("Transpose", {from->input(0)}, {{"perm", std::vector<int64_t>{0, 2, 3, 1, 4}}});
    patch.replace(transpose, *patch.add("Reshape", {pixels, patch.ints({0, 0, 0, channels})}));
  });
}

// A Transpose from channels last and ToBlocked.
void from_channels_last(Editor& editor, ir::Node& to_blocked) {
  const ir::Node* transpose = producer(to_blocked.input(0), "Transpose");
  if (!transpose || permutation_of(*transpose, 4) != Permutation{0, 3, 1, 2} || !transpose->input(0)) return;
  const SymbolicShape* blocked = editor.shape(to_blocked.output(0));
  const SymbolicShape* plain = editor.shape(transpose->input(0));
  const int64_t block = to_blocked.int_attribute("block", 0);
  if (!blocked || !plain || plain->size() != 4 || !(*plain)[3].is_known() || (*plain)[3].value() % block != 0) return;
  const int64_t blocks = (*plain)[3].value() / block;
  editor.rewrite(to_blocked, [&](Patch& patch) {
    ir::Value* pixels = patch.add("Reshape", {transpose->input(0), patch.ints({0, 0, 0, blocks, block})});
    patch.replace(to_blocked, *patch.add("Transpose", {pixels}, {{"perm", std::vector<int64_t>{0, 3, 1, 2, 4}}}));
  });
}

}  // namespace

// Between blocks of channels and channels last, blocks move as they are.
void move_whole_blocks(Editor& editor, ir::Node& node) {
  if (node.op_type == "Transpose" && node.domain.empty()) return to_channels_last(editor, node);
  if (is_tenon(&node, "ToBlocked") && node.output(0)) return from_channels_last(editor, node);
}

}  // namespace tenon::passes

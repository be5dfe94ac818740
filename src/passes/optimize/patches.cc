#include <algorithm>

#include "ops/window.h"
#include "passes/optimize/fusion.h"
#include "passes/optimize/passes.h"

namespace tenon::passes {
namespace {

// With more of them, convolutions are as fast.
constexpr int64_t most_channels = 4;

// Whether windows lie side by side and cover the image.
bool is_of_patches(const ir::Node& node, const SymbolicShape& x, const Tensor& w) {
  const ops::WindowAttributes window(node);
  for (int d = 0; d < 2; ++d) {
    const ops::WindowAxis axis = window.axis(d, 2, w.dim(d + 2));
    const Dim& size = x[static_cast<size_t>(d + 2)];
    if (!size.is_known() || size.value() < 1 || axis.kernel != Dim(w.dim(d + 2))) return false;
    if (axis.auto_pad != ops::AutoPad::explicit_pads || axis.pad_begin != 0 || axis.pad_end != 0) return false;
    if (axis.stride != w.dim(d + 2) || axis.dilation != 1 || size.value() % axis.stride != 0) return false;
  }
  return true;
}

}  // namespace

// As vision transformers begin.
void multiply_patches(Editor& editor, ir::Node& node) {
  if (node.op_type != "Conv" || !node.domain.empty() || !has_fused_type(editor, node.output(0))) return;
  const Tensor *w = Editor::constant(node.input(1)), *bias = Editor::constant(node.input(2));
  const SymbolicShape* x = editor.shape(node.input(0));
  if (!w || !x || w->rank() != 4 || x->size() != 4 || node.int_attribute("group", 1) != 1) return;
  if (node.input(2) && !bias) return;
  const int64_t channels = w->dim(1), outputs = w->dim(0), rows = w->dim(2), columns = w->dim(3);
  if (channels > most_channels || rows * columns < 2 || outputs < 1 || !is_of_patches(node, *x, *w)) return;
  const int64_t down = (*x)[2].value() / rows, across = (*x)[3].value() / columns, size = channels * rows * columns;
  editor.rewrite(node, [&](Patch& patch) {
    using Axes = std::vector<int64_t>;
    ir::Value* y = patch.add("Reshape", {node.input(0), patch.ints({0, channels, down, rows, across, columns})});
    y = patch.add("Transpose", {y}, {{"perm", Axes{0, 2, 4, 1, 3, 5}}});
    y = patch.add("Reshape", {y, patch.ints({0, down * across, size})});
    ir::Value* weights = patch.add("Reshape", {node.input(1), patch.ints({outputs, size})});
    weights = patch.add("Transpose", {weights}, {{"perm", Axes{1, 0}}});
    y = patch.add("MatMul", {y, weights});
    if (bias) y = patch.add("Add", {y, node.input(2)});
    y = patch.add("Transpose", {y}, {{"perm", Axes{0, 2, 1}}});
    patch.replace(node, *patch.add("Reshape", {y, patch.ints({0, outputs, down, across})}));
  });
}

}  // namespace tenon::passes

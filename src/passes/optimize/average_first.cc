#include <algorithm>

#include "passes/optimize/fusion.h"
#include "passes/optimize/passes.h"

namespace tenon::passes {
namespace {

bool has_explicit_pads(const ir::Node& node) { return node.string_attribute("auto_pad", "NOTSET") == "NOTSET"; }

// Whether each output is a sum over the channels of one pixel, for outputs enough to be worth more than an average of
// each input.
bool is_sum_of_pixels(const ir::Node& conv) {
  constexpr int64_t least_outputs = 4;
  const Tensor* weights = Editor::constant(conv.input(1));
  if (!weights || weights->rank() < 3 || !has_explicit_pads(conv)) return false;
  for (int axis = 2; axis < weights->rank(); ++axis) {
    if (weights->dim(axis) != 1) return false;
  }
  const int64_t groups = std::max<int64_t>(1, conv.int_attribute("group", 1));
  return weights->dim(0) >= least_outputs * groups && are_all(conv.ints_attribute("strides"), 1) &&
         are_all(conv.ints_attribute("pads"), 0);
}

// Whether it leaves half of the pixels or fewer, and what it gives is 1 where all pixels are: padding does not count.
bool averages(const ir::Node& node) {
  if (!node.domain.empty()) return false;
  if (node.op_type == "GlobalAveragePool") return true;
  if (node.op_type != "AveragePool" || !has_explicit_pads(node)) return false;
  const bool counts_padding = node.int_attribute("count_include_pad", 0) != 0;
  if (counts_padding && !are_all(node.ints_attribute("pads"), 0)) return false;
  int64_t step = 1;
  for (int64_t stride : node.ints_attribute("strides")) step = std::max(step, stride);
  return step > 1;
}

}  // namespace

// Conv(x) of single pixels, then their average: an average of x is smaller by then.
void average_first(Editor& editor, ir::Node& conv) {
  if (conv.op_type != "Conv" || !conv.domain.empty() || !conv.output(0) || !is_float(editor, conv.output(0))) return;
  if (!is_sum_of_pixels(conv) || !editor.is_only_user(*conv.output(0))) return;
  ir::Node& average = *conv.output(0)->users()[0];
  if (&average.graph() != &conv.graph() || !averages(average)) return;
  editor.rewrite(average, [&](Patch& patch) {
    patch.name_after(conv);
    std::vector<ir::Value*> inputs(conv.inputs().begin(), conv.inputs().end());
    inputs[0] = patch.add_like(average, {inputs[0]}).output(0);
    patch.replace(average, *patch.add_like(conv, inputs).output(0));
  });
}

}  // namespace tenon::passes

#include <algorithm>

#include "base/rounding.h"
#include "ops/window.h"
#include "passes/match.h"
#include "passes/optimize/passes.h"

namespace tenon::passes {
namespace {

// What a convolution keeps of its kernel along one axis.
struct Taps {
  int64_t begin, end;  // of the kernel
  int64_t pad_begin, pad_end;
};

// Whether some output reads a number of the image by this tap, and not the padding around it.
bool is_read(const ops::WindowAxis& axis, int64_t tap, int64_t inputs, int64_t outputs) {
  const int64_t first = tap * axis.dilation - axis.pad_begin;  // what the first output reads
  const int64_t output = divide_up(std::max<int64_t>(0, -first), axis.stride);
  return output < outputs && output * axis.stride + first < inputs;
}

// Padding goes with the taps that would read it, so no more of them go than there is padding.
Taps read_taps(const ops::WindowAxis& axis, int64_t inputs, int64_t outputs) {
  const int64_t size = axis.kernel.value();
  Taps taps{0, size, axis.pad_begin, axis.pad_end};
  while (taps.begin < size - 1 && taps.pad_begin >= axis.dilation && !is_read(axis, taps.begin, inputs, outputs))
    ++taps.begin, taps.pad_begin -= axis.dilation;
  while (taps.end > taps.begin + 1 && taps.pad_end >= axis.dilation && !is_read(axis, taps.end - 1, inputs, outputs))
    --taps.end, taps.pad_end -= axis.dilation;
  return taps;
}

}  // namespace

void drop_unread_taps(Editor& editor, ir::Node& conv) {
  if (conv.op_type != "Conv" || !conv.domain.empty()) return;
  const Tensor* weights = Editor::constant(conv.input(1));
  const SymbolicShape *x = editor.shape(conv.input(0)), *y = editor.shape(conv.output(0));
  if (!weights || !x || !y) return;
  const ops::WindowAttributes window(conv);
  const int spatial = weights->rank() - 2;
  std::vector<int64_t> kernel, dilations, pads(static_cast<size_t>(2 * spatial)), starts, ends, axes;
  bool drops = false;
  for (int d = 0; d < spatial; ++d) {
    const auto at = static_cast<size_t>(d);
    const ops::WindowAxis axis = window.axis(d, spatial, weights->dim(d + 2));
    const Dim &inputs = (*x)[at + 2], &outputs = (*y)[at + 2];
    if (axis.auto_pad != ops::AutoPad::explicit_pads) return;
    Taps taps{0, weights->dim(d + 2), axis.pad_begin, axis.pad_end};
    if (inputs.is_known() && outputs.is_known()) taps = read_taps(axis, inputs.value(), outputs.value());
    const int64_t size = taps.end - taps.begin;
    drops = drops || size < weights->dim(d + 2);
    kernel.push_back(size);
    dilations.push_back(size == 1 ? 1 : axis.dilation);
    pads[at] = taps.pad_begin;
    pads[at + static_cast<size_t>(spatial)] = taps.pad_end;
    starts.push_back(taps.begin);
    ends.push_back(taps.end);
    axes.push_back(d + 2);
  }
  if (!drops) return;
  editor.rewrite(conv, [&](Patch& patch) {
    std::vector<ir::Value*> inputs(conv.inputs().begin(), conv.inputs().end());
    inputs[1] = patch.add("Slice", {inputs[1], patch.ints(starts), patch.ints(ends), patch.ints(axes)});
    ir::Node& smaller =
        patch.add_like(conv, inputs, {{"kernel_shape", kernel}, {"dilations", dilations}, {"pads", pads}});
    patch.replace(conv, *smaller.output(0));
  });
}

}  // namespace tenon::passes

#include <algorithm>

#include "passes/match.h"
#include "passes/optimize/fusion.h"
#include "passes/optimize/passes.h"
#include "passes/optimize/quantized.h"

namespace tenon::passes {
namespace {

// Quantizing what was dequantized the same way; limits that quantization has itself.
void simplify_quantize(Editor& editor, ir::Node& node) {
  const std::optional<Quantized> result = after(editor, node);
  if (!result || !result->is_whole()) return;
  if (std::optional<Quantized> source = before(editor, node.input(0)); source && source->same_meaning(*result)) {
    if (!editor.can_replace(*node.output(0), *source->codes)) return;
    return editor.rewrite(node, [&](Patch& patch) { patch.replace(node, *source->codes); });
  }
  for (const char* op : {"Relu", "Clip"}) {
    const ir::Node* limit = producer(node.input(0), op);
    if (!limit || !limits_by_itself(*limit, *result)) continue;
    return editor.rewrite(node, [&](Patch& patch) {
      patch.replace(node, *patch.add_like(node, {limit->input(0), node.input(1), node.input(2)}).output(0));
    });
  }
}

constexpr std::string_view movers[] = {"Concat",  "DepthToSpace", "Expand",    "Flatten",      "Gather",
                                       "MaxPool", "Reshape",      "Slice",     "SpaceToDepth", "Split",
                                       "Squeeze", "Tile",         "Transpose", "Unsqueeze"};

// Pixels as they are, none of them outside of the image.
bool takes_nearest(const ir::Node& node) {
  return node.op_type == "Resize" && node.string_attribute("mode", "nearest") == "nearest" &&
         node.string_attribute("coordinate_transformation_mode", "half_pixel") != "tf_crop_and_resize";
}

// Operators that only move or pick elements do it with the codes.
void move_codes(Editor& editor, ir::Node& node) {
  const bool splits = node.op_type == "Split";
  if (node.output_count() != 1 && !splits) return;
  const size_t moved = node.op_type == "Concat" ? node.input_count() : 1;
  std::vector<ir::Value*> inputs(node.inputs().begin(), node.inputs().end());
  std::optional<Quantized> first;
  for (size_t i = 0; i < moved; ++i) {
    std::optional<Quantized> source = before(editor, inputs[i]);
    if (!source || !source->is_whole()) return;
    if (first && !first->same_meaning(*source)) return;
    if (!first) first = source;
    inputs[i] = source->codes;
  }
  if (!first) return;
  ir::Node* quantize = splits ? nullptr : sole_user(editor, node.output(0), "QuantizeLinear");
  const std::optional<Quantized> result = quantize ? after(editor, *quantize) : std::nullopt;
  if (result && quantize->input(0) == node.output(0) && result->same_meaning(*first)) {
    return editor.rewrite(*quantize, [&](Patch& patch) {
      patch.name_after(node);
      patch.replace(*quantize, *patch.add_like(node, inputs).output(0));
    });
  }
  // Else what comes next may be done in integers. Nothing is dequantized twice for it.
  if (node.op_type == "Expand" || node.op_type == "Tile") return;
  for (size_t i = 0; i < moved; ++i) {
    if (!editor.is_only_user(*node.input(i))) return;
  }
  editor.rewrite(node, [&](Patch& patch) {
    const ir::Node& codes = patch.add_like(node, inputs);
    for (size_t i = 0; i < node.output_count(); ++i) {
      if (node.output(i))
        patch.replace(*node.output(i),
                      *patch.add("DequantizeLinear", {codes.output(i), first->scale, first->zero_point}));
    }
  });
}

}  // namespace

bool moves_codes(const ir::Node& node) {
  return node.domain.empty() && (std::ranges::find(movers, node.op_type) != std::end(movers) || takes_nearest(node));
}

void compute_in_integers(Editor& editor, ir::Node& node) {
  if (node.domain == ops::tenon_domain && node.op_type == "LookUp") {
    simplify_look_up(editor, node);
    if (!editor.is_removed(node)) look_up_in_convolution(editor, node);
    return;
  }
  if (node.domain == ops::microsoft && (node.op_type == "QLinearAdd" || node.op_type == "QLinearMul")) {
    look_up_arithmetic(editor, node);
    if (!editor.is_removed(node) && node.op_type == "QLinearAdd") add_codes_to_product(editor, node);
    if (!editor.is_removed(node) && node.op_type == "QLinearAdd") add_codes_to_convolution(editor, node);
    return;
  }
  if (node.op_type == "QLinearConv" && !node.domain.empty()) return read_image_in_convolution(editor, node);
  if (!node.domain.empty()) return;
  if (node.op_type == "QuantizeLinear") {
    simplify_quantize(editor, node);
    if (!editor.is_removed(node)) look_up_codes(editor, node);
    return;
  }
  if (node.op_type == "Conv") return convolve_codes(editor, node);
  if (node.op_type == "MatMul" || node.op_type == "Gemm") return multiply_matrices_of_codes(editor, node);
  if (node.op_type == "Add" || node.op_type == "Mul") {
    add_codes(editor, node);
    if (!editor.is_removed(node)) scale_product(editor, node);
    return;
  }
  if (node.op_type == "Softmax") return softmax_of_codes(editor, node);
  if (node.op_type == "GlobalAveragePool") return average_codes(editor, node);
  if (moves_codes(node)) move_codes(editor, node);
  if (node.op_type == "Concat" && !editor.is_removed(node)) recode_concat(editor, node);
}

}  // namespace tenon::passes

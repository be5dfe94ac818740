#include <algorithm>
#include <cmath>

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

// Sums of this many products of bytes, and a bias of up to 2^30, do not overflow.
bool fits_int32(const Dim& products) { return products.is_known() && products.value() <= (1 << 30) / (255 * 255); }

// The content of a constant, or of a dequantized constant of int32.
std::optional<std::vector<double>> content(const ir::Value* value) {
  const Tensor* tensor = Editor::constant(value);
  if (tensor) {
    if (tensor->type() != ElementType::float32) return std::nullopt;
    return std::vector<double>(tensor->data<float>().begin(), tensor->data<float>().end());
  }
  const ir::Node* node = producer(value, "DequantizeLinear");
  const Tensor* codes = node ? Editor::constant(node->input(0)) : nullptr;
  const Tensor* scale = node ? Editor::constant(node->input(1)) : nullptr;
  if (!codes || codes->type() != ElementType::int32 || codes->rank() != 1 || !scale ||
      scale->type() != ElementType::float32 || (scale->elements() != 1 && scale->elements() != codes->elements()) ||
      node->int_attribute("block_size", 0) != 0)
    return std::nullopt;
  if (node->input(2)) {
    const Tensor* zero = Editor::constant(node->input(2));
    if (!zero || zero->type() != ElementType::int32 ||
        !std::ranges::all_of(zero->data<int32_t>(), [](int32_t z) { return z == 0; }))
      return std::nullopt;
  }
  std::vector<double> result;
  for (size_t i = 0; i < codes->data<int32_t>().size(); ++i)
    result.push_back(static_cast<double>(codes->data<int32_t>()[i]) *
                     static_cast<double>(scale->data<float>()[scale->elements() == 1 ? 0 : i]));
  return result;
}

// The bias in steps of x's scale times w's. Null where that is more than an eighth of a step of the output off.
std::optional<Tensor> quantized_bias(const std::vector<double>& bias, const Quantized& x, const Quantized& w,
                                     double output_scale) {
  Tensor result(ElementType::int32, Shape{static_cast<int64_t>(bias.size())});
  for (size_t i = 0; i < bias.size(); ++i) {
    const double step = static_cast<double>(x.scales()[0]) * static_cast<double>(w.scales()[w.is_whole() ? 0 : i]);
    const double code = std::nearbyint(bias[i] / step);
    if (!(std::abs(code) <= (1 << 30)) || std::abs(code * step - bias[i]) > output_scale / 8) return std::nullopt;
    result.mutable_data<int32_t>()[i] = static_cast<int32_t>(code);
  }
  return result;
}

// What sums of products of codes stand for.
Tensor product_scale(const Quantized& a, const Quantized& b) {
  Tensor scale(ElementType::float32, b.is_whole() ? Shape{} : Shape{std::ssize(b.scales())});
  std::ranges::transform(b.scales(), scale.mutable_data<float>().begin(), [&](float s) { return a.scales()[0] * s; });
  return scale;
}

void fuse_conv(Editor& editor, ir::Node& node) {
  const std::optional<Quantized> x = before(editor, node.input(0)), w = before(editor, node.input(1));
  const SymbolicShape* shape = editor.shape(node.input(1));
  if (!x || !x->is_whole() || !w || !shape || shape->size() < 3) return;
  const Dim channels = (*shape)[0];
  if (!w->is_whole() && (w->axis != 0 || !channels.is(std::ssize(w->scales())))) return;
  if (!fits_int32(element_count(SymbolicShape(shape->begin() + 1, shape->end())))) return;
  const std::string domain(ops::ai_onnx);
  if (ir::Node* quantize = quantizer_of(editor, node.output(0))) {
    const Quantized y = *after(editor, *quantize);
    std::optional<Tensor> bias;
    if (node.input(2)) {
      const std::optional<std::vector<double>> numbers = content(node.input(2));
      if (!numbers || !channels.is(std::ssize(*numbers))) return;
      bias = quantized_bias(*numbers, *x, *w, static_cast<double>(y.scales()[0]));
      if (!bias) return;
    }
    return editor.rewrite(*quantize, [&](Patch& patch) {
      patch.name_after(node);
      patch.replace(*quantize, *patch.add_fused("QLinearConv", node,
                                                {x->codes, x->scale, zero_point(patch, *x), w->codes, w->scale,
                                                 zero_point(patch, *w), y.scale, zero_point(patch, y),
                                                 bias ? patch.constant(std::move(*bias)) : nullptr},
                                                {}, domain));
    });
  }
  // With one channel a group, integers are no faster than floats.
  if (!channels.is_known() || channels.value() <= node.int_attribute("group", 1)) return;
  editor.rewrite(node, [&](Patch& patch) {
    ir::Value* sums =
        patch.add_fused("ConvInteger", node, {x->codes, w->codes, x->zero_point, w->zero_point}, {}, domain);
    ir::Value* y = patch.add("DequantizeLinear", {sums, patch.constant(product_scale(*x, *w))}, {{"axis", 1}});
    if (node.input(2)) {
      std::vector<int64_t> by_channel(shape->size() - 1, 1);
      by_channel[0] = channels.value();
      y = patch.add("Add", {y, patch.add("Reshape", {node.input(2), patch.ints(by_channel)})});
    }
    patch.replace(node, *y);
  });
}

// MatMul, and Gemm that only adds to it.
void fuse_matmul(Editor& editor, ir::Node& node) {
  const bool is_gemm = node.op_type == "Gemm", transposed = is_gemm && node.int_attribute("transB", 0) != 0;
  if (is_gemm && (node.float_attribute("alpha", 1) != 1 || node.int_attribute("transA", 0) != 0 ||
                  (node.input(2) && node.float_attribute("beta", 1) != 1)))
    return;
  const std::optional<Quantized> a = before(editor, node.input(0)), b = before(editor, node.input(1));
  const SymbolicShape* shape = editor.shape(node.input(1));
  if (!a || !a->is_whole() || !b || !shape || shape->size() < 2 || editor.rank(node.input(0)) < 2) return;
  const size_t columns = transposed ? 0 : shape->size() - 1, inner = transposed ? 1 : shape->size() - 2;
  if (!b->is_whole() && (shape->size() != 2 || b->axis != static_cast<int64_t>(columns))) return;
  if (!fits_int32((*shape)[inner])) return;
  ir::Value* addend = is_gemm ? node.input(2) : nullptr;
  ir::Node* quantize = addend ? nullptr : quantizer_of(editor, node.output(0));
  auto right = [&](Patch& patch) {
    return transposed ? patch.add("Transpose", {b->codes}, {{"perm", std::vector<int64_t>{1, 0}}}) : b->codes;
  };
  if (quantize) {
    const Quantized y = *after(editor, *quantize);
    return editor.rewrite(*quantize, [&](Patch& patch) {
      patch.name_after(node);
      patch.replace(*quantize,
                    *patch.add("QLinearMatMul", {a->codes, a->scale, zero_point(patch, *a), right(patch), b->scale,
                                                 zero_point(patch, *b), y.scale, zero_point(patch, y)}));
    });
  }
  editor.rewrite(node, [&](Patch& patch) {
    ir::Value* sums = patch.add("MatMulInteger", {a->codes, right(patch), a->zero_point, b->zero_point});
    ir::Value* y = patch.add("DequantizeLinear", {sums, patch.constant(product_scale(*a, *b))}, {{"axis", -1}});
    patch.replace(node, addend ? *patch.add("Add", {y, addend}) : *y);
  });
}

}  // namespace

bool moves_codes(const ir::Node& node) {
  return node.domain.empty() && (std::ranges::find(movers, node.op_type) != std::end(movers) || takes_nearest(node));
}

void compute_in_integers(Editor& editor, ir::Node& node) {
  if (!node.domain.empty()) return;
  if (node.op_type == "QuantizeLinear") {
    simplify_quantize(editor, node);
    if (!editor.is_removed(node)) look_up_codes(editor, node);
    return;
  }
  if (node.op_type == "Conv") return fuse_conv(editor, node);
  if (node.op_type == "MatMul" || node.op_type == "Gemm") return fuse_matmul(editor, node);
  if (node.op_type == "Add" || node.op_type == "Mul") return add_codes(editor, node);
  if (node.op_type == "GlobalAveragePool") return average_codes(editor, node);
  if (moves_codes(node)) move_codes(editor, node);
  if (node.op_type == "Concat" && !editor.is_removed(node)) recode_concat(editor, node);
}

}  // namespace tenon::passes

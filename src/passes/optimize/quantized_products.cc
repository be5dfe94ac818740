#include <algorithm>
#include <cmath>
#include <cstring>

#include "ops/qlinear/qlinear.h"
#include "passes/match.h"
#include "passes/optimize/fusion.h"
#include "passes/optimize/permutation.h"
#include "passes/optimize/quantized.h"

namespace tenon::passes {
namespace {

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

const std::string microsoft(ops::microsoft), tenon_domain(ops::tenon_domain);

// Whether the value is a list of this many.
bool is_list(Editor& editor, const ir::Value* value, const Dim& size) {
  const SymbolicShape* shape = editor.shape(value);
  return shape && shape->size() == 1 && (*shape)[0] == size;
}

// Whether these are weights that tensor cores multiply. A device computes with what else is quantized in floats.
bool is_for_tensor_cores(const Quantized& weights, int axis) {
  const Tensor* codes = Editor::constant(weights.codes);
  return codes && (codes->rank() == 2 || codes->rank() == 4) && codes->elements() > 0 &&
         ops::fits_bytes(*codes, Editor::constant(weights.zero_point), axis);
}

// A MatMul, a Gemm that only adds to it, or a MatMul with a list that is added to it.
class MatrixProduct {
 public:
  MatrixProduct(Editor& editor, ir::Node& node) : node_(node), result_(node.output(0)) {
    is_transposed_ = node.op_type == "Gemm" && node.int_attribute("transB", 0) != 0;
    if (node.op_type == "Gemm" && (node.float_attribute("alpha", 1) != 1 || node.int_attribute("transA", 0) != 0 ||
                                   (node.input(2) && node.float_attribute("beta", 1) != 1)))
      return;
    a_ = before(editor, node.input(0));
    b_ = before(editor, node.input(1));
    const SymbolicShape* shape = editor.shape(node.input(1));
    if (!a_ || !a_->is_whole() || !b_ || !shape || shape->size() < 2 || editor.rank(node.input(0)) < 2) return;
    const size_t columns = is_transposed_ ? 0 : shape->size() - 1, inner = is_transposed_ ? 1 : shape->size() - 2;
    if (!b_->is_whole() && (shape->size() != 2 || b_->axis != static_cast<int64_t>(columns))) return;
    columns_ = (*shape)[columns];
    fits_ = fits_int32((*shape)[inner]);
    is_possible_ = editor.target().is_device ? fits_ && is_for_tensor_cores(*b_, static_cast<int>(columns))
                                             : fits_ || !(*shape)[inner].is_known();
    if (node.op_type == "Gemm")
      addend_ = node.input(2);
    else
      find_addend(editor);
  }
  explicit operator bool() const { return is_possible_; }

  // Into codes, as one step; false where that cannot be. QLinearMatMul takes care of sums that overflow.
  bool quantize(Editor& editor) const {
    ir::Node* quantize = quantizer_of(editor, result_);
    if (!quantize) return false;
    const Quantized y = *after(editor, *quantize);
    std::optional<Tensor> bias;
    if (addend_) {
      const std::optional<std::vector<double>> numbers = content(addend_);
      if (!numbers || !columns_.is(std::ssize(*numbers))) return false;
      bias = quantized_bias(*numbers, *a_, *b_, static_cast<double>(y.scales()[0]));
      if (!bias) return false;
    }
    editor.rewrite(*quantize, [&](Patch& patch) {
      patch.name_after(node_);
      std::vector<ir::Value*> inputs = {a_->codes,    a_->scale,           zero_point(patch, *a_),
                                        right(patch), b_->scale,           zero_point(patch, *b_),
                                        y.scale,      zero_point(patch, y)};
      if (bias) inputs.push_back(patch.constant(std::move(*bias)));
      patch.replace(*quantize, *patch.add("QLinearMatMul", inputs, {}, bias ? tenon_domain : ""));
    });
    return true;
  }

  // Into floats.
  void scale(Editor& editor) const {
    if (!fits_) return;
    const bool is_bias = addend_ && is_list(editor, addend_, columns_);
    editor.rewrite(*result_->producer(), [&](Patch& patch) {
      patch.name_after(node_);
      ir::Value* y = patch.add("MatMulIntegerToFloat",
                               {a_->codes, right(patch), a_->scale, b_->scale, zero_point(patch, *a_),
                                zero_point(patch, *b_), is_bias ? addend_ : nullptr},
                               {}, microsoft);
      patch.replace(*result_, addend_ && !is_bias ? *patch.add("Add", {y, addend_}) : *y);
    });
  }

 private:
  void find_addend(Editor& editor) {
    ir::Node* add = sole_user(editor, node_.output(0), "Add");
    if (!add || !is_list(editor, other_input(*add, node_.output(0)), columns_)) return;
    addend_ = other_input(*add, node_.output(0));
    result_ = add->output(0);
  }
  ir::Value* right(Patch& patch) const {
    if (!is_transposed_) return b_->codes;
    return patch.add("Transpose", {b_->codes}, {{"perm", std::vector<int64_t>{1, 0}}});
  }

  ir::Node& node_;
  ir::Value* result_;
  ir::Value* addend_ = nullptr;
  std::optional<Quantized> a_, b_;
  Dim columns_ = Dim::unknown();
  bool is_transposed_ = false, is_possible_ = false, fits_ = false;
};

// The MatMulInteger whose sums a value is, as floats, and nothing else.
ir::Node* product_of(Editor& editor, const ir::Value* value) {
  ir::Node* cast = producer(value, "Cast");
  if (!cast || !editor.is_only_user(*value) || element_type(editor, value) != ElementType::float32) return nullptr;
  ir::Node* product = producer(cast->input(0), "MatMulInteger");
  if (!product || !editor.is_only_user(*product->output(0))) return nullptr;
  return editor.rank(product->input(0)) >= 2 && editor.rank(product->input(1)) >= 2 ? product : nullptr;
}

bool is_single(Editor& editor, const ir::Value* value) {
  const SymbolicShape* shape = editor.shape(value);
  return shape && (shape->empty() || (shape->size() == 1 && (*shape)[0].is(1)));
}

// Sums times a number, or one for each column.
void scale_sums(Editor& editor, ir::Node& node) {
  for (size_t i : {0, 1}) {
    const ir::Node* product = product_of(editor, node.input(i));
    ir::Value* scale = node.input(1 - i);
    if (!product || (editor.target().is_device && !ops::why_not_constant_matrix(*product, 1, 3).empty())) continue;
    const Dim columns = editor.shape(product->input(1))->back();
    if (!is_single(editor, scale) && !is_list(editor, scale, columns)) continue;
    // That is a product itself, mostly, of the scale of A and those of B.
    ir::Node* scales = producer(scale, "Mul");
    const bool is_first = scales && is_single(editor, scales->input(0));
    const bool is_split = is_first || (scales && is_single(editor, scales->input(1)));
    return editor.rewrite(node, [&](Patch& patch) {
      patch.name_after(*product);
      ir::Value* a_scale = is_split ? scales->input(is_first ? 0 : 1) : patch.number(1, ElementType::float32);
      ir::Value* b_scale = is_split ? scales->input(is_first ? 1 : 0) : scale;
      patch.replace(node, *patch.add("MatMulIntegerToFloat",
                                     {product->input(0), product->input(1), a_scale, b_scale, product->input(2),
                                      product->input(3)},
                                     {}, microsoft));
    });
  }
}

// A list that is added to such a product.
void add_bias(Editor& editor, ir::Node& node) {
  for (size_t i : {0, 1}) {
    const ir::Node* product = node.input(i)->producer();
    if (!product || product->domain != ops::microsoft || product->op_type != "MatMulIntegerToFloat" ||
        product->input(6) || !editor.is_only_user(*node.input(i)))
      continue;
    if (!is_list(editor, node.input(1 - i), editor.shape(product->input(1))->back())) continue;
    return editor.rewrite(node, [&](Patch& patch) {
      patch.name_after(*product);
      std::vector<ir::Value*> inputs(product->inputs().begin(), product->inputs().end());
      inputs.resize(6);
      inputs.push_back(node.input(1 - i));
      patch.replace(node, *patch.add("MatMulIntegerToFloat", inputs, {}, microsoft));
    });
  }
}

// The QLinearMatMul, of this domain or of ai.onnx, that makes a value and nothing is added to yet.
const ir::Node* quantized_product(const ir::Value* value) {
  const ir::Node* node = value->producer();
  const bool is_product = node && node->op_type == "QLinearMatMul" && !node->input(9) &&
                          (node->domain.empty() || node->domain == ops::tenon_domain);
  return is_product ? node : nullptr;
}

// Whether both are constants with the same bytes.
bool is_same_constant(const ir::Value* a, const ir::Value* b) {
  const Tensor *first = Editor::constant(a), *second = Editor::constant(b);
  return first && second && first->type() == second->type() && first->elements() == second->elements() &&
         std::memcmp(first->raw(), second->raw(), static_cast<size_t>(first->bytes())) == 0;
}

// The QLinearConv with channels last that makes a value for one node alone.
const ir::Node* convolution_of_device(Editor& editor, const ir::Value* value) {
  const ir::Node* node = value->producer();
  const bool is_conv = node && node->op_type == "QLinearConv" && node->int_attribute("channels_last", 0) != 0 &&
                       (node->domain == ops::microsoft || node->domain == ops::tenon_domain);
  return is_conv && editor.is_only_user(*value) ? node : nullptr;
}

// Whether the device has a kernel for it, be it with every channel by itself.
bool is_convolution_of_device(const ir::Node& conv, const Quantized& weights) {
  const Tensor* codes = Editor::constant(weights.codes);
  const int64_t groups = conv.int_attribute("group", 1);
  if (!codes) return false;
  if (groups > 1 && groups == codes->dim(0) && codes->dim(1) == 1) return true;
  return (groups == 1 || codes->dim(1) % 4 == 0) && is_for_tensor_cores(weights, 0);
}

}  // namespace

void add_codes_to_product(Editor& editor, ir::Node& node) {
  for (size_t i : {0, 3}) {
    const ir::Node* product = quantized_product(node.input(i));
    const size_t other = 3 - i;
    if (!product || !editor.is_only_user(*node.input(i)) || !Editor::constant(node.input(other)) || !node.input(2) ||
        !node.input(5) || !node.input(7))
      continue;
    const SymbolicShape* columns = editor.shape(product->input(3));
    if (!columns || !is_list(editor, node.input(other), columns->back())) continue;
    const auto is_one = [](const ir::Value* value) {
      const Tensor* constant = Editor::constant(value);
      return constant && constant->type() == ElementType::float32 && constant->elements() == 1;
    };
    // The product's scale is the one that the sum was made with.
    if (!is_one(product->input(1)) || !is_one(product->input(6))) continue;
    return editor.rewrite(node, [&](Patch& patch) {
      patch.name_after(*product);
      std::vector<ir::Value*> inputs(product->inputs().begin(), product->inputs().end());
      inputs.resize(9);
      for (size_t k : {other, other + 1, other + 2, size_t{6}, size_t{7}}) inputs.push_back(node.input(k));
      patch.replace(node, *patch.add("QLinearMatMul", inputs, {}, tenon_domain));
    });
  }
}

// Its kernel copies images whose channels are no multiple of four, and can quantize and turn them while it does.
void read_image_in_convolution(Editor& editor, ir::Node& node) {
  const Tensor* weights = Editor::constant(node.input(3));
  const ir::Node* transpose = producer(node.input(0), "Transpose");
  if (!editor.target().is_device || node.int_attribute("channels_last", 0) == 0 || !weights || !transpose ||
      weights->rank() != 4 || weights->dim(1) % 4 == 0 || node.int_attribute("group", 1) != 1 ||
      !editor.is_only_user(*node.input(0)) || permutation_of(*transpose, 4) != Permutation{0, 2, 3, 1})
    return;
  ir::Value* image = transpose->input(0);
  const ir::Node* quantize = producer(image, "QuantizeLinear");
  if (quantize && editor.is_only_user(*image) && after(editor, *quantize) &&
      is_same_constant(quantize->input(1), node.input(1)) && is_same_constant(quantize->input(2), node.input(2)))
    image = quantize->input(0);
  editor.rewrite(node, [&](Patch& patch) {
    std::vector<ir::Value*> inputs(node.inputs().begin(), node.inputs().end());
    inputs[0] = image;
    patch.replace(node, *patch.add_fused("QLinearConv", node, inputs, {{"reads_channels_first", 1}}, tenon_domain));
  });
}

void look_up_in_convolution(Editor& editor, ir::Node& node) {
  if (!editor.target().is_device) return;
  const ir::Node* conv = convolution_of_device(editor, node.input(0));
  if (!conv || conv->input(14) || element_type(editor, node.input(1)) != element_type(editor, node.input(0))) return;
  editor.rewrite(node, [&](Patch& patch) {
    patch.name_after(*conv);
    std::vector<ir::Value*> inputs(conv->inputs().begin(), conv->inputs().end());
    inputs.resize(14);
    inputs.push_back(node.input(1));
    patch.replace(node, *patch.add_fused("QLinearConv", *conv, inputs, {}, tenon_domain));
  });
}

void add_codes_to_convolution(Editor& editor, ir::Node& node) {
  if (!editor.target().is_device || !node.input(2) || !node.input(5) || !node.input(7)) return;
  for (size_t i : {0, 3}) {
    const ir::Node* conv = convolution_of_device(editor, node.input(i));
    const size_t other = 3 - i;
    if (!conv || conv->input(9) || conv->input(14) || Editor::constant(node.input(other)) ||
        !editor.same_shape(node.input(other), node.input(i)) || !is_same_constant(node.input(i + 1), conv->input(6)) ||
        !is_same_constant(node.input(i + 2), conv->input(7)))
      continue;
    return editor.rewrite(node, [&](Patch& patch) {
      patch.name_after(*conv);
      std::vector<ir::Value*> inputs(conv->inputs().begin(), conv->inputs().end());
      inputs.resize(9);
      for (size_t k : {other, other + 1, other + 2, size_t{6}, size_t{7}}) inputs.push_back(node.input(k));
      patch.replace(node, *patch.add_fused("QLinearConv", *conv, inputs, {}, tenon_domain));
    });
  }
}

void convolve_codes(Editor& editor, ir::Node& node) {
  const std::optional<Quantized> x = before(editor, node.input(0)), w = before(editor, node.input(1));
  const SymbolicShape* shape = editor.shape(node.input(1));
  if (!x || !x->is_whole() || !w || !shape || shape->size() < 3) return;
  const Dim channels = (*shape)[0];
  if (!w->is_whole() && (w->axis != 0 || !channels.is(std::ssize(w->scales())))) return;
  if (!fits_int32(element_count(SymbolicShape(shape->begin() + 1, shape->end())))) return;
  if (editor.target().is_device && (shape->size() != 4 || !is_convolution_of_device(node, *w))) return;
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
  if (editor.target().is_device || !channels.is_known() || channels.value() <= node.int_attribute("group", 1)) return;
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

void multiply_matrices_of_codes(Editor& editor, ir::Node& node) {
  const MatrixProduct product(editor, node);
  if (product && !product.quantize(editor)) product.scale(editor);
}

void scale_product(Editor& editor, ir::Node& node) {
  if (node.op_type == "Mul")
    scale_sums(editor, node);
  else
    add_bias(editor, node);
}

}  // namespace tenon::passes

// The operators of com.microsoft that quantized models carry. They are written as those of ONNX, which the optimiser
// turns into steps that compute with integers.
#include "ops/qlinear/qlinear.h"
#include "ops/cost.h"
#include "ops/decomposition.h"
#include "ops/inference.h"
#include "ops/window.h"

namespace tenon::ops {
namespace {

using enum ElementType;
using ir::AttributeKind;

constexpr TypeSet bytes{int8, uint8};

// ---- what decompositions share

bool has_channels_last(const ir::Node& node) { return node.int_attribute("channels_last", 0) != 0; }

// (a - its zero point) times (b - its zero point), as int32.
Term integer_product(Decomposition& d, Term a, Term b, Term a_zero, Term b_zero) {
  return d.add("MatMulInteger", {a, b, a_zero, b_zero}, {}, int32);
}

// ---- elementwise

void infer_broadcast(Inference& i, size_t a, size_t b) {
  std::optional<SymbolicShape> shape;
  if (i.has_shape(a) && i.has_shape(b)) shape = i.broadcast(i.shape(a), i.shape(b));
  i.output(0, i.element(a), std::move(shape));
}

void add_binary(OperatorList& list, const char* name, const char* op) {
  list.add(name, {1}, microsoft)
      .input("A", "T")
      .input("A_scale", TypeSet{float32})
      .optional_input("A_zero_point", "T")
      .input("B", "T")
      .input("B_scale", TypeSet{float32})
      .optional_input("B_zero_point", "T")
      .input("C_scale", TypeSet{float32})
      .optional_input("C_zero_point", "T")
      .output("C", "T")
      .types("T", bytes)
      .infer([](Inference& i) { infer_broadcast(i, 0, 3); })
      .decompose([op](Decomposition& d) {
        const Term result = d.add(op, {dequantized(d, 0), dequantized(d, 3)});
        d.output(0, quantized(d, result, 6, d.element(0)));
      });
}

Operator& add_unary(OperatorList& list, const char* name, const char* op) {
  return list.add(name, {1}, microsoft)
      .input("X", "T")
      .input("X_scale", TypeSet{float32})
      .optional_input("X_zero_point", "T")
      .input("Y_scale", TypeSet{float32})
      .optional_input("Y_zero_point", "T")
      .output("Y", "T")
      .types("T", bytes)
      .infer([](Inference& i) { i.same_as_input(0); })
      .decompose([op](Decomposition& d) {
        d.output(0, quantized(d, add_with_attributes(d, op, {dequantized(d, 0)}, float32), 3, d.element(0)));
      });
}

void decompose_where(Decomposition& d) {
  d.output(0, quantized(d, where(d.input(0), dequantized(d, 1), dequantized(d, 4)), 7, d.element(1)));
}

void infer_where(Inference& i) {
  std::optional<SymbolicShape> shape;
  if (i.has_shape(0) && i.has_shape(1) && i.has_shape(4))
    shape = i.broadcast(i.shape(0), i.broadcast(i.shape(1), i.shape(4)));
  i.output(0, i.element(1), std::move(shape));
}

// ---- Softmax

// Before opset 13 all axes from `axis` on were one.
void decompose_softmax(Decomposition& d) {
  const int64_t axis = d.node().int_attribute("axis", -1);
  const bool is_one_axis = d.node().int_attribute("opset", 13) >= 13;
  const Term x = dequantized(d, 0);
  Term y;
  if (is_one_axis) {
    y = d.add("Softmax", {x}, {{"axis", axis}});
  } else {
    const Term rows = d.add("Flatten", {x}, {{"axis", axis}});
    y = reshape(d.add("Softmax", {rows}, {{"axis", 1}}), shape_of(x));
  }
  d.output(0, quantized(d, y, 3, d.element(0)));
}

// ---- Concat

void infer_concat(Inference& i) {
  std::optional<SymbolicShape> shape;
  const int64_t wanted = i.node().int_attribute("axis", 0);
  if ((i.input_count() - 2) % 3 != 0)
    i.fail_with(ErrorCode::invalid_model, "inputs after the zero point come in threes: tensor, scale, zero point");
  for (size_t k = 2; k < i.input_count(); k += 3) {
    if (!i.has_shape(k)) return i.output(0, i.element(1), std::nullopt);
    if (!shape) {
      shape = i.shape(k);
      continue;
    }
    i.require_rank(k, static_cast<int>(shape->size()));
    const auto axis = static_cast<size_t>(i.axis(wanted, i.rank(k)));
    for (size_t a = 0; a < shape->size(); ++a) {
      Dim& size = (*shape)[a];
      size = a == axis ? size + i.shape(k)[a] : i.equal(size, i.shape(k)[a], "the sizes of what is joined");
    }
  }
  i.output(0, i.element(1), std::move(shape));
}

void decompose_concat(Decomposition& d) {
  std::vector<Term> parts;
  for (size_t i = 2; i + 2 < d.node().input_count(); i += 3) parts.push_back(dequantized(d, i));
  d.output(0, quantized(d, concat(parts, d.node().int_attribute("axis", 0)), 0, d.element(1)));
}

// ---- pools

void infer_average_pool(Inference& i) {
  const WindowAttributes window(i.node());
  if (!i.has_shape(0)) return i.output(0, i.element(0), std::nullopt);
  i.require_rank_at_least(0, 3);
  const int spatial = i.rank(0) - 2, first = has_channels_last(i.node()) ? 1 : 2;
  window.check(spatial);
  SymbolicShape shape = i.shape(0);
  for (int k = 0; k < spatial; ++k) {
    Dim& size = shape[static_cast<size_t>(first + k)];
    size = window.axis(k, spatial).output(size);
  }
  i.output(0, i.element(0), std::move(shape));
}

void decompose_average_pool(Decomposition& d) {
  Term x = dequantized(d, 0);
  const bool is_last = has_channels_last(d.node());
  if (is_last) x = transpose(x, channels_from_end(d.rank(0)));
  Term y = add_with_attributes(d, "AveragePool", {x}, float32);
  if (is_last) y = transpose(y, channels_to_end(d.rank(0)));
  d.output(0, quantized(d, y, 3, d.element(0)));
}

void infer_global_pool(Inference& i) {
  if (!i.has_shape(0)) return i.output(0, i.element(0), std::nullopt);
  i.require_rank_at_least(0, 3);
  SymbolicShape shape = i.shape(0);
  const size_t first = has_channels_last(i.node()) ? 1 : 2;
  for (size_t k = 0; k + 2 < shape.size(); ++k) shape[first + k] = 1;
  i.output(0, i.element(0), std::move(shape));
}

void decompose_global_pool(Decomposition& d) {
  const int64_t first = has_channels_last(d.node()) ? 1 : 2;
  std::vector<int64_t> axes;
  for (int64_t k = 0; k + 2 < d.rank(0); ++k) axes.push_back(first + k);
  d.output(0, quantized(d, reduce("ReduceMean", dequantized(d, 0), d.ints(axes)), 3, d.element(0)));
}

Operator& add_pool(OperatorList& list, const char* name) {
  return list.add(name, {1}, microsoft)
      .input("X", "T")
      .input("x_scale", TypeSet{float32})
      .optional_input("x_zero_point", "T")
      .input("y_scale", TypeSet{float32})
      .optional_input("y_zero_point", "T")
      .output("Y", "T")
      .types("T", bytes)
      .attribute("channels_last", AttributeKind::int_);
}

// ---- products

std::optional<SymbolicShape> product_shape(const Inference& i, size_t left, size_t right) {
  if (!i.has_shape(left) || !i.has_shape(right)) return std::nullopt;
  i.require_rank_at_least(left, 2);
  i.require_rank_at_least(right, 2);
  const SymbolicShape &a = i.shape(left), &b = i.shape(right);
  i.equal(a.back(), b[b.size() - 2], "the last axis of A and the second last of B");
  SymbolicShape result = i.broadcast(SymbolicShape(a.begin(), a.end() - 2), SymbolicShape(b.begin(), b.end() - 2));
  result.push_back(a[a.size() - 2]);
  result.push_back(b.back());
  return result;
}

void infer_gemm(Inference& i) {
  const ElementType type = i.has_input(7) ? (i.has_input(8) ? i.element(8) : i.element(0)) : float32;
  if (!i.has_shape(0) || !i.has_shape(3)) return i.output(0, type, std::nullopt);
  i.require_rank(0, 2);
  i.require_rank(3, 2);
  const bool trans_a = i.node().int_attribute("transA", 0) != 0, trans_b = i.node().int_attribute("transB", 0) != 0;
  i.equal(i.shape(0)[trans_a ? 0 : 1], i.shape(3)[trans_b ? 1 : 0], "the inner sizes of A and B");
  i.output(0, type, SymbolicShape{i.shape(0)[trans_a ? 1 : 0], i.shape(3)[trans_b ? 0 : 1]});
}

void decompose_gemm(Decomposition& d) {
  const ir::Node& node = d.node();
  Term a = d.input(0), b = d.input(3);
  if (node.int_attribute("transA", 0) != 0) a = transpose(a, {1, 0});
  if (node.int_attribute("transB", 0) != 0) b = transpose(b, {1, 0});
  Term sum = integer_product(d, a, b, d.input(2), d.input(5));
  if (d.has_input(6)) sum = sum + d.input(6);
  const Term y = cast(sum, float32) * (d.input(1) * d.input(4) * node.float_attribute("alpha", 1));
  if (!d.has_input(7)) return d.output(0, y);
  d.output(0, quantized(d, y, 7, d.has_input(8) ? d.element(8) : d.element(0)));
}

// The sum of an integer product in float, times both scales, and a bias where there is one.
Term scaled(Decomposition& d, Term product, Term scale, size_t bias) {
  const Term y = cast(product, scale.type) * scale;
  return d.has_input(bias) ? y + d.input(bias) : y;
}

void decompose_matmul_integer_to_float(Decomposition& d) {
  const Term product = integer_product(d, d.input(0), d.input(1), d.input(4), d.input(5));
  d.output(0, scaled(d, product, d.wide_input(2) * d.wide_input(3), 6));
}

void decompose_dynamic_quantize_matmul(Decomposition& d) {
  const Term a = d.input(0);
  ir::Node& quantize = d.add_node("DynamicQuantizeLinear", {a.value});
  const Term bytes_of_a{a.decomposition, d.add_output(quantize), uint8};
  const Term scale{a.decomposition, d.add_output(quantize), float32};
  const Term zero{a.decomposition, d.add_output(quantize), uint8};
  d.output(0, scaled(d, integer_product(d, bytes_of_a, d.input(1), zero, d.input(3)), scale * d.input(2), 4));
}

// ---- QuantizeLinear and DequantizeLinear, which had 16 bits here before they had them in ONNX

void decompose_as_onnx(Decomposition& d, const char* op, ElementType type) {
  const std::vector<Term> inputs = {d.input(0), d.input(1), d.input(2)};
  const int64_t axis = d.node().int_attribute("axis", 1);
  d.output(0, d.add(op, inputs, {{"axis", axis}}, type));
}

void define_linear(OperatorList& list) {
  constexpr TypeSet quantized_types{int8, uint8, int16, uint16, int4, uint4};
  list.add("QuantizeLinear", {1}, microsoft)
      .input("x", "T1")
      .input("y_scale", "T1")
      .optional_input("y_zero_point", "T2")
      .output("y", "T2")
      .types("T1", {float32, float16})
      .types("T2", quantized_types)
      .attribute("axis", AttributeKind::int_)
      .infer([](Inference& i) { i.output(0, i.has_input(2) ? i.element(2) : uint8, i.type(0).shape); })
      .decompose(
          [](Decomposition& d) { decompose_as_onnx(d, "QuantizeLinear", d.has_input(2) ? d.element(2) : uint8); });
  list.add("DequantizeLinear", {1}, microsoft)
      .input("x", "T1")
      .input("x_scale", "T2")
      .optional_input("x_zero_point", "T1")
      .output("y", "T2")
      .types("T1", quantized_types | TypeSet{int32})
      .types("T2", {float32, float16})
      .attribute("axis", AttributeKind::int_)
      .infer([](Inference& i) { i.output(0, i.element(1), i.type(0).shape); })
      .decompose([](Decomposition& d) { decompose_as_onnx(d, "DequantizeLinear", d.element(1)); });
}

void define_products(OperatorList& list) {
  list.add("QGemm", {1}, microsoft)
      .input("A", "TA")
      .input("a_scale", TypeSet{float32})
      .input("a_zero_point", "TA")
      .input("B", "TB")
      .input("b_scale", TypeSet{float32})
      .input("b_zero_point", "TB")
      .optional_input("C", TypeSet{int32})
      .optional_input("y_scale", TypeSet{float32})
      .optional_input("y_zero_point", "TYZ")
      .output("Y", TypeSet{float32, int8, uint8})
      .types("TA", bytes)
      .types("TB", bytes)
      .types("TYZ", bytes)
      .attribute("transA", AttributeKind::int_)
      .attribute("transB", AttributeKind::int_)
      .attribute("alpha", AttributeKind::float_)
      .infer(infer_gemm)
      .decompose(decompose_gemm);
  list.add("MatMulIntegerToFloat", {1}, microsoft)
      .input("A", "T1")
      .input("B", "T2")
      .input("a_scale", "T3")
      .input("b_scale", "T3")
      .optional_input("a_zero_point", "T1")
      .optional_input("b_zero_point", "T2")
      .optional_input("bias", "T3")
      .output("Y", "T3")
      .types("T1", bytes)
      .types("T2", bytes)
      .types("T3", {float32, float16})
      .infer([](Inference& i) { i.output(0, i.element(2), product_shape(i, 0, 1)); })
      .decompose(decompose_matmul_integer_to_float)
      .costs(multiply_adds::of_matmul);
  list.add("DynamicQuantizeMatMul", {1}, microsoft)
      .input("A", "T1")
      .input("B", "T2")
      .input("b_scale", "T1")
      .optional_input("b_zero_point", "T2")
      .optional_input("bias", "T1")
      .output("Y", "T1")
      .types("T1", {float32})
      .types("T2", bytes)
      .infer([](Inference& i) { i.output(0, float32, product_shape(i, 0, 1)); })
      .decompose(decompose_dynamic_quantize_matmul)
      .costs(multiply_adds::of_matmul);
}

}  // namespace

Term dequantized(Decomposition& d, size_t i) {
  return d.add("DequantizeLinear", {d.input(i), d.input(i + 1), d.input(i + 2)}, {}, d.element(i + 1));
}

Term quantized(Decomposition& d, Term x, size_t i, ElementType type) {
  if (d.has_input(i + 1)) return d.add("QuantizeLinear", {x, d.input(i), d.input(i + 1)}, {}, type);
  return d.add("QuantizeLinear", {x, d.input(i)}, {{"output_dtype", type}}, type);
}

void define_qlinear(OperatorList& list) {
  add_binary(list, "QLinearAdd", "Add");
  add_binary(list, "QLinearMul", "Mul");
  add_unary(list, "QLinearSigmoid", "Sigmoid");
  add_unary(list, "QLinearLeakyRelu", "LeakyRelu").attribute("alpha", AttributeKind::float_);
  list.add("QLinearWhere", {1}, microsoft)
      .input("condition", types::bools)
      .input("X", "T")
      .input("x_scale", TypeSet{float32})
      .input("x_zero_point", "T")
      .input("Y", "T")
      .input("y_scale", TypeSet{float32})
      .input("y_zero_point", "T")
      .input("z_scale", TypeSet{float32})
      .input("z_zero_point", "T")
      .output("Z", "T")
      .types("T", bytes)
      .infer(infer_where)
      .decompose(decompose_where);
  list.add("QLinearSoftmax", {1}, microsoft)
      .input("X", "T")
      .input("X_scale", TypeSet{float32})
      .optional_input("x_zero_point", "T")
      .input("y_scale", TypeSet{float32})
      .input("y_zero_point", "T")
      .output("Y", "T")
      .types("T", bytes)
      .attribute("axis", AttributeKind::int_)
      .required_attribute("opset", AttributeKind::int_)
      .infer([](Inference& i) { i.same_as_input(0); })
      .decompose(decompose_softmax);
  list.add("QLinearConcat", {1}, microsoft)
      .input("Y_scale", TypeSet{float32})
      .input("Y_zero_point", "T")
      .variadic_input("inputs", "TV", 3, /*same_types=*/false)
      .output("Y", "T")
      .types("T", bytes)
      .types("TV", {int8, uint8, float32})
      .required_attribute("axis", AttributeKind::int_)
      .infer(infer_concat)
      .decompose(decompose_concat);
  add_pool(list, "QLinearGlobalAveragePool").infer(infer_global_pool).decompose(decompose_global_pool);
  add_pool(list, "QLinearAveragePool")
      .attribute("auto_pad", AttributeKind::string)
      .attribute("ceil_mode", AttributeKind::int_)
      .attribute("count_include_pad", AttributeKind::int_)
      .required_attribute("kernel_shape", AttributeKind::ints)
      .attribute("pads", AttributeKind::ints)
      .attribute("strides", AttributeKind::ints)
      .infer(infer_average_pool)
      .decompose(decompose_average_pool);
  define_products(list);
  define_linear(list);
  define_nhwc(list);
  define_quantized_layers(list);
}

}  // namespace tenon::ops

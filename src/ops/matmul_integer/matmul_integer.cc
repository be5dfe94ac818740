#include "ops/cost.h"
#include "ops/decomposition.h"
#include "ops/inference.h"
#include "ops/operator.h"

namespace tenon::ops {
namespace {

using enum ElementType;

// numpy's matmul of the inputs `left` and `right`.
std::optional<SymbolicShape> product_shape(const Inference& i, size_t left, size_t right) {
  if (!i.has_shape(left) || !i.has_shape(right)) return std::nullopt;
  SymbolicShape a = i.shape(left), b = i.shape(right);
  if (a.empty() || b.empty()) i.fail("scalars cannot be multiplied as matrices");
  bool row = a.size() == 1, column = b.size() == 1;
  if (row) a.insert(a.begin(), Dim(1));
  if (column) b.push_back(Dim(1));
  i.equal(a.back(), b[b.size() - 2], "the last axis of A and the second last of B");
  SymbolicShape result = i.broadcast(SymbolicShape(a.begin(), a.end() - 2), SymbolicShape(b.begin(), b.end() - 2));
  if (!row) result.push_back(a[a.size() - 2]);
  if (!column) result.push_back(b.back());
  return result;
}

// QLinearMatMul of these types, and what it costs.
Operator& add_quantized(OperatorList& list, std::vector<int> since, std::string_view domain, TypeSet types,
                        TypeSet scales) {
  return list.add("QLinearMatMul", std::move(since), domain)
      .input("a", "T1")
      .input("a_scale", "TS")
      .input("a_zero_point", "T1")
      .input("b", "T2")
      .input("b_scale", "TS")
      .input("b_zero_point", "T2")
      .input("y_scale", "TS")
      .input("y_zero_point", "T3")
      .output("y", "T3")
      .types("TS", scales)
      .types("T1", types)
      .types("T2", types)
      .types("T3", types)
      .infer([](Inference& i) { i.output(0, i.element(7), product_shape(i, 0, 3)); })
      .costs([](const ir::Node& node, std::span<const CostTensor> inputs) {
        return inputs.size() > 3 && inputs[3].shape ? multiply_adds::of_matmul(node, inputs.subspan(2))
                                                    : Dim::unknown();
      });
}

void decompose_with_bias(Decomposition& d) {
  const Term sums = d.add("MatMulInteger", {d.input(0), d.input(3), d.input(2), d.input(5)}, {}, int32);
  const Term y = cast(d.has_input(8) ? sums + d.input(8) : sums, float32) * (d.input(1) * d.input(4));
  const Term codes = d.add("QuantizeLinear", {y, d.input(6), d.input(7)}, {}, d.element(7));
  if (!d.has_input(9)) return d.output(0, codes);
  const auto dequantized = [&](Term x, size_t scale) {
    return d.add("DequantizeLinear", {x, d.input(scale), d.input(scale + 1)}, {}, float32);
  };
  const Term sum = dequantized(codes, 6) + dequantized(d.input(9), 10);
  d.output(0, d.add("QuantizeLinear", {sum, d.input(12), d.input(13)}, {}, d.element(7)));
}

}  // namespace

void define_matmul_integer(OperatorList& list) {
  constexpr TypeSet bytes{int8, uint8};
  constexpr TypeSet quantized{int8, uint8, float8e4m3fn, float8e4m3fnuz, float8e5m2, float8e5m2fnuz};
  list.add("MatMulInteger", {10})
      .input("A", "T1")
      .input("B", "T2")
      .optional_input("a_zero_point", "T1")
      .optional_input("b_zero_point", "T2")
      .output("Y", TypeSet{int32})
      .types("T1", bytes)
      .types("T2", bytes)
      .infer([](Inference& i) { i.output(0, int32, product_shape(i, 0, 1)); })
      .costs(multiply_adds::of_matmul);
  add_quantized(list, {10, 21}, ai_onnx, quantized, {float32, float16, bfloat16});
  // With a bias for each column, which is added to the sums, and codes for each column, which are added to the result:
  // that then has their sum's scale and zero point. There is one scale of A and one of Y.
  add_quantized(list, {1}, tenon_domain, bytes, {float32})
      .optional_input("bias", TypeSet{int32})
      .optional_input("addend", "T3")
      .optional_input("addend_scale", "TS")
      .optional_input("addend_zero_point", "T3")
      .optional_input("sum_scale", "TS")
      .optional_input("sum_zero_point", "T3")
      .decompose(decompose_with_bias);
}

}  // namespace tenon::ops

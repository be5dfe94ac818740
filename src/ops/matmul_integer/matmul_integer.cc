#include "ops/cost.h"
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
  list.add("QLinearMatMul", {10, 21})
      .input("a", "T1")
      .input("a_scale", "TS")
      .input("a_zero_point", "T1")
      .input("b", "T2")
      .input("b_scale", "TS")
      .input("b_zero_point", "T2")
      .input("y_scale", "TS")
      .input("y_zero_point", "T3")
      .output("y", "T3")
      .types("TS", {float32, float16, bfloat16})
      .types("T1", quantized)
      .types("T2", quantized)
      .types("T3", quantized)
      .infer([](Inference& i) { i.output(0, i.element(7), product_shape(i, 0, 3)); })
      .costs([](const ir::Node& node, std::span<const CostTensor> inputs) {
        return inputs.size() > 3 && inputs[3].shape ? multiply_adds::of_matmul(node, inputs.subspan(2))
                                                    : Dim::unknown();
      });
}

}  // namespace tenon::ops

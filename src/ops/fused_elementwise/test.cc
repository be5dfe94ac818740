#include "op_test.h"

namespace tenon {
namespace {

using Names = std::vector<std::string>;

OpTest fused(Names operators, std::initializer_list<int> operands) {
  OpTest test("FusedElementwise", 1, "tenon");
  test.attribute("operators", std::move(operators)).attribute("operands", operands);
  return test;
}

TEST(FusedElementwise, Broadcasts) {
  // (x + scalar) * row - column, relu.
  fused({"Add", "Mul", "Sub", "Relu"}, {0, 1, 4, 2, 5, 3, 6})
      .input<float>({2, 3}, {1, 2, 3, 4, 5, 6})
      .input<float>({}, {1})
      .input<float>({3}, {1, 10, 100})
      .input<float>({2, 1}, {3, 1000})
      .expect<float>({2, 3}, {0, 27, 397, 0, 0, 0})
      .run();
  // One per channel, in the middle; functions of what is broadcast.
  fused({"Exp", "Neg", "Add", "Add"}, {1, 2, 0, 4, 3, 5})
      .input<float>({1, 2, 2}, {1, 2, 3, 4})
      .input<float>({2, 1}, {0, 0})
      .input<float>({}, {5})
      .expect<float>({1, 2, 2}, {-3, -2, -1, 0})
      .run();
  fused({"Neg", "Relu"}, {0, 1}).input<float>({}, {-2}).expect<float>({}, {2}).run();
  fused({"Neg", "Add"}, {0, 1, 2})
      .input<float>({0, 3}, {})
      .input<float>({3}, {1, 2, 3})
      .expect<float>({0, 3}, {})
      .run();
}

TEST(FusedElementwise, Parameters) {
  fused({"LeakyRelu", "Clip", "Pow", "HardSigmoid"}, {0, 1, 2, 3})
      .attribute("parameters", {0.5f, -1.0f, 3.0f, 2.0f, 0.25f, 0.5f})
      .input<float>({4}, {-1, 2, 5, -20})
      .expect<float>({4}, {0.5625f, 1, 1, 0.75f})
      .run();
  fused({"Pow", "Pow", "Clip"}, {0, 1, 2})
      .attribute("parameters", {0.5f, 3.0f, -INFINITY, 20.0f})
      .input<float>({3}, {4, 1, 9})
      .expect<float>({3}, {8, 1, 20})
      .run();
  fused({"Gelu", "TanhGelu"}, {0, 1})
      .input<float>({2}, {1, -1})
      .expect<float>({2}, {0.67285f, -0.069325f})
      .tolerance(1e-4, 0)
      .run();
}

TEST(FusedElementwise, ResultsUsedTwice) {
  // s = a + b; s * s - s / a
  fused({"Add", "Mul", "Div", "Sub"}, {0, 1, 2, 2, 2, 0, 3, 4})
      .input<float>({2}, {1, 2})
      .input<float>({2}, {2, 2})
      .expect<float>({2}, {6, 14})
      .run();
}

TEST(FusedElementwise, LongerThanABlock) {
  const int64_t rows = 41, columns = 97, n = rows * columns;
  Tensor x(ElementType::float32, Shape{rows, columns}), row(ElementType::float32, Shape{columns}),
      column(ElementType::float32, Shape{rows, 1}), y(ElementType::float32, Shape{rows, columns});
  for (int64_t i = 0; i < columns; ++i) row.mutable_data<float>()[i] = static_cast<float>(i % 7);
  for (int64_t i = 0; i < rows; ++i) column.mutable_data<float>()[i] = static_cast<float>(i % 5);
  for (int64_t i = 0; i < n; ++i) {
    x.mutable_data<float>()[i] = static_cast<float>(i % 13);
    y.mutable_data<float>()[i] = static_cast<float>(i % 13 + i % columns % 7 - i / columns % 5);
  }
  fused({"Add", "Sub"}, {0, 1, 3, 2}).input(x).input(row).input(column).expect(y).run();
}

TEST(FusedElementwise, Errors) {
  auto error = [](Names operators, std::initializer_list<int> operands, std::initializer_list<float> parameters = {}) {
    OpTest test = fused(std::move(operators), operands);
    std::string text = test.attribute("parameters", parameters).input<float>({1}, {1}).error();
    return text.substr(text.find("): ") + 3);
  };
  EXPECT_EQ(error({"MatMul"}, {0, 0}), "operator 'MatMul' cannot be fused");
  EXPECT_EQ(error({}, {}), "it has 1 inputs and 0 operators, not up to 16 and 1 to 32");
  EXPECT_EQ(error(Names(33, "Neg"), {0}), "it has 1 inputs and 33 operators, not up to 16 and 1 to 32");
  EXPECT_EQ(error({"Neg"}, {1}), "operand 1 of Neg is not computed before it");
  EXPECT_EQ(error({"Neg"}, {-1}), "operand -1 of Neg is not computed before it");
  EXPECT_EQ(error({"Add"}, {0}), "'operands' has too few elements");
  EXPECT_EQ(error({"Neg"}, {0, 0}), "'operands' has too many elements");
  EXPECT_EQ(error({"Clip"}, {0}, {1}), "'parameters' has too few elements");
  EXPECT_EQ(error({"Neg"}, {0}, {1}), "'parameters' has too many elements");
  EXPECT_EQ(error({"Neg", "Neg"}, {0, 0}), "operand 1 is used by no operator");
  EXPECT_EQ(error({"Celu"}, {0}, {0}), "alpha is 0, Celu divides by it");
}

}  // namespace
}  // namespace tenon

#include "op_test.h"

namespace tenon {
namespace {

// Two samples at two positions, three classes.
OpTest nll(const char* reduction, int64_t opset = 22) {
  OpTest test("NegativeLogLikelihoodLoss", opset);
  test.attribute("reduction", reduction)
      .input<float>({2, 3, 2}, {1, 2, 2, 2, 3, 2, 0, 1, 2, 2, 1, 2})
      .input<int64_t>({2, 2}, {2, 1, 0, 2});
  return test;
}

TEST(NegativeLogLikelihoodLoss, Reductions) {
  nll("none").expect<float>({2, 2}, {-3, -2, 0, -2}).run();
  nll("sum", 12).expect<float>({}, {-7}).run();
  nll("mean", 13).expect<float>({}, {-1.75f}).run();
}

TEST(NegativeLogLikelihoodLoss, Weights) {
  nll("none").input<float>({3}, {0.2f, 0.3f, 0.1f}).expect<float>({2, 2}, {-0.3f, -0.6f, 0, -0.2f}).run();
  nll("sum").input<float>({3}, {0.2f, 0.3f, 0.1f}).expect<float>({}, {-1.1f}).run();
  nll("mean").input<float>({3}, {0.2f, 0.3f, 0.1f}).expect<float>({}, {-1.1f / 0.7f}).run();
}

TEST(NegativeLogLikelihoodLoss, IgnoredClass) {
  nll("none").attribute("ignore_index", 2).expect<float>({2, 2}, {0, -2, 0, 0}).run();
  nll("mean").attribute("ignore_index", 2).expect<float>({}, {-1}).run();
  nll("mean").attribute("ignore_index", 2).input<float>({3}, {3, 1, 9}).expect<float>({}, {-0.5f}).run();
  OpTest("NegativeLogLikelihoodLoss")
      .attribute("ignore_index", -5)
      .input<float>({2, 2}, {1, 2, 3, 4})
      .input<int32_t>({2}, {-5, 1})
      .expect<float>({}, {-4})
      .run();
}

// Sums are made of parts, which start anywhere in a sample.
TEST(NegativeLogLikelihoodLoss, MorePositionsThanAPartHas) {
  for (int64_t inner : {1, 7, 1999}) {
    const int64_t outer = 10000 / inner, classes = 3;
    Tensor scores(ElementType::float32, {outer, classes, inner}), chosen(ElementType::int64, {outer, inner});
    Tensor losses(ElementType::float32, {outer, inner});
    for (int64_t i = 0; i < scores.elements(); ++i) scores.mutable_data<float>()[i] = static_cast<float>(i % 1013);
    double sum = 0;
    for (int64_t i = 0; i < chosen.elements(); ++i) {
      const int64_t label = i % 5 % classes;
      chosen.mutable_data<int64_t>()[i] = label;
      const float loss = -scores.data<float>()[(i / inner * classes + label) * inner + i % inner];
      losses.mutable_data<float>()[i] = loss;
      sum += loss;
    }
    const auto test = [&](const char* reduction) {
      OpTest node("NegativeLogLikelihoodLoss");
      node.attribute("reduction", reduction).input(scores).input(chosen).tolerance(0, 0);
      return node;
    };
    test("none").expect(losses).run();
    test("sum").expect<float>({}, {static_cast<float>(sum)}).run();
  }
}

TEST(NegativeLogLikelihoodLoss, TypesAndEmpty) {
  OpTest("NegativeLogLikelihoodLoss")
      .input<double>({1, 2}, {1, 2})
      .input<int32_t>({1}, {1})
      .expect<double>({}, {-2})
      .run();
  OpTest("NegativeLogLikelihoodLoss")
      .input<float16>({1, 2}, {float16(1), float16(2)})
      .input<int64_t>({1}, {1})
      .expect<float16>({}, {float16(-2)})
      .run();
  OpTest("NegativeLogLikelihoodLoss")
      .input<bfloat16>({1, 2}, {bfloat16(1), bfloat16(2)})
      .input<int64_t>({1}, {1})
      .expect<bfloat16>({}, {bfloat16(-2)})
      .run();
  OpTest("NegativeLogLikelihoodLoss")
      .attribute("reduction", "none")
      .input<float>({0, 2}, {})
      .input<int64_t>({0}, {})
      .expect<float>({0}, {})
      .run();
}

OpTest cross_entropy(const char* reduction) {
  OpTest test("SoftmaxCrossEntropyLoss");
  test.attribute("reduction", reduction).input<float>({2, 3}, {1, 2, 3, 1, 1, 1}).input<int64_t>({2}, {0, 2});
  return test;
}

TEST(SoftmaxCrossEntropyLoss, Reductions) {
  cross_entropy("none").expect<float>({2}, {2.4076059f, 1.0986123f}).run();
  cross_entropy("sum").expect<float>({}, {3.5062182f}).run();
  cross_entropy("mean").input<float>({3}, {1, 5, 3}).expect<float>({}, {(2.4076059f + 3 * 1.0986123f) / 4}).run();
}

TEST(SoftmaxCrossEntropyLoss, LogProbability) {
  cross_entropy("mean")
      .attribute("ignore_index", 0)
      .expect<float>({}, {1.0986123f})
      .expect<float>({2, 3}, {-2.4076059f, -1.4076059f, -0.4076059f, -1.0986123f, -1.0986123f, -1.0986123f})
      .run();
  cross_entropy("mean")
      .no_output()
      .expect<float>({2, 3}, {-2.4076059f, -1.4076059f, -0.4076059f, -1.0986123f, -1.0986123f, -1.0986123f})
      .run();
  // Classes are on axis 1, also where others follow.
  OpTest("SoftmaxCrossEntropyLoss", 12)
      .attribute("reduction", "none")
      .input<double>({1, 2, 2}, {0, 1, 0, 1})
      .input<int32_t>({1, 2}, {0, 1})
      .expect<double>({1, 2}, {0.69314718, 0.69314718})
      .expect<double>({1, 2, 2}, {-0.69314718, -0.69314718, -0.69314718, -0.69314718})
      .run();
  OpTest("SoftmaxCrossEntropyLoss", 13)
      .input<float16>({1, 2}, {float16(0), float16(0)})
      .input<int64_t>({1}, {0})
      .expect<float16>({}, {float16(0.6931472f)})
      .expect<float16>({1, 2}, {float16(-0.6931472f), float16(-0.6931472f)})
      .run();
}

TEST(SoftmaxCrossEntropyLoss, NoClasses) {
  OpTest("SoftmaxCrossEntropyLoss")
      .attribute("ignore_index", 7)
      .attribute("reduction", "sum")
      .input<double>({1, 0}, {})
      .input<int64_t>({1}, {7})
      .expect<double>({}, {0})
      .stays_whole()
      .run();
}

TEST(Loss, Errors) {
  EXPECT_EQ(
      nll("average").error().substr(0, 123),
      "invalid-attribute in NegativeLogLikelihoodLoss 'tested' (node 0): reduction is 'average'; it may be 'none', "
      "'sum' or 'mean'");
  EXPECT_EQ(
      OpTest("SoftmaxCrossEntropyLoss").input<float>({1, 2}, {1, 2}).input<int64_t>({1}, {2}).error(),
      "invalid-value in SoftmaxCrossEntropyLoss 'tested' (node 0): class 2 at position 0 is not one of the 2 classes");
  EXPECT_NE(OpTest("NegativeLogLikelihoodLoss")
                .attribute("ignore_index", -2)
                .input<float>({1, 2}, {1, 2})
                .input<int32_t>({1}, {-1})
                .error()
                .find("class -1 at position 0 is not one of the 2 classes"),
            std::string::npos);
  EXPECT_NE(nll("sum")
                .input<float>({2}, {1, 1})
                .error()
                .find("axis 1 of the scores and the weights must be equal: 3 against 2"),
            std::string::npos);
  EXPECT_NE(OpTest("SoftmaxCrossEntropyLoss")
                .input<float>({1, 2}, {1, 2})
                .input<int64_t>({3}, {0, 0, 0})
                .error()
                .find("the scores and axis 0 of the classes must be equal: 1 against 3"),
            std::string::npos);
}

}  // namespace
}  // namespace tenon

#include "op_test.h"

namespace tenon {
namespace {

OpTest linear(const char* op) { return OpTest(op, 5, "ai.onnx.ml"); }

TEST(LinearRegressor, TargetsAndTypes) {
  linear("LinearRegressor")
      .attribute("coefficients", {1.0f, 2.0f})
      .attribute("intercepts", {0.5f})
      .input<float>({2, 2}, {1, 2, 3, 4})
      .expect<float>({2, 1}, {5.5f, 11.5f})
      .run();
  linear("LinearRegressor")
      .attribute("coefficients", {1.0f, 2.0f, -1.0f, 0.0f})
      .attribute("targets", 2)
      .input<int64_t>({2}, {1, 2})
      .expect<float>({1, 2}, {5, -1})
      .run();
  linear("LinearRegressor")
      .attribute("coefficients", {2.0f})
      .input<double>({1, 1}, {0.25})
      .expect<float>({1, 1}, {0.5f})
      .run();
  linear("LinearRegressor")
      .attribute("coefficients", {2.0f})
      .input<int32_t>({0, 1}, {})
      .expect<float>({0, 1}, {})
      .run();
}

// Whole numbers, so that sums are the same in any order; rows and features fill groups and vectors, or do not.
TEST(LinearRegressor, ManyFeatures) {
  for (int64_t targets = 1; targets <= 5; ++targets) {
    for (int64_t features : {7, 8, 11, 30}) {
      constexpr int64_t rows = 7;
      std::vector<float> coefficients;
      for (int64_t i = 0; i < targets * features; ++i) coefficients.push_back(static_cast<float>(i % 13 - 6));
      Tensor x(ElementType::float32, {rows, features}), y(ElementType::float32, {rows, targets});
      const auto in = x.mutable_data<float>(), out = y.mutable_data<float>();
      for (size_t i = 0; i < in.size(); ++i) in[i] = static_cast<float>(i % 17) - 8;
      for (int64_t row = 0; row < rows; ++row) {
        for (int64_t t = 0; t < targets; ++t) {
          float& sum = out[static_cast<size_t>(row * targets + t)] = 0.5f;
          for (int64_t i = 0; i < features; ++i) {
            sum += in[static_cast<size_t>(row * features + i)] * coefficients[static_cast<size_t>(t * features + i)];
          }
        }
      }
      linear("LinearRegressor")
          .attribute("coefficients", coefficients)
          .attribute("intercepts", std::vector<float>(static_cast<size_t>(targets), 0.5f))
          .attribute("targets", targets)
          .input(x)
          .expect(y)
          .run();
    }
  }
}

TEST(LinearRegressor, PostTransform) {
  auto test = [](const char* transform, std::vector<float> coefficients) {
    OpTest result = linear("LinearRegressor");
    result.attribute("targets", static_cast<int64_t>(coefficients.size()));
    result.attribute("post_transform", transform).attribute("coefficients", coefficients).input<float>({1, 1}, {1});
    return result;
  };
  test("SOFTMAX", {1, 2}).expect<float>({1, 2}, {0.26894143f, 0.7310586f}).run();
  test("SOFTMAX_ZERO", {0, 1, 2}).expect<float>({1, 3}, {0, 0.26894143f, 0.7310586f}).run();
  test("LOGISTIC", {1, -1}).expect<float>({1, 2}, {0.7310586f, 0.26894143f}).run();
  test("LOGISTIC", {1}).expect<float>({1, 1}, {1}).run();
  test("PROBIT", {0.6f}).tolerance(1e-4, 0).expect<float>({1, 1}, {0.25335f}).run();
}

TEST(LinearClassifier, ManyClasses) {
  linear("LinearClassifier")
      .attribute("coefficients", {1.0f, 0.0f, 0.0f, 1.0f, -1.0f, -1.0f})
      .attribute("intercepts", {0.0f, 0.0f, 1.0f})
      .attribute("classlabels_strings", std::vector<std::string>{"a", "b", "c"})
      .input<float>({3, 2}, {2, 1, 1, 2, 0, 0})
      .expect<std::string>({3}, {"a", "b", "c"})
      .expect<float>({3, 3}, {2, 1, -2, 1, 2, -2, 0, 0, 1})
      .run();
}

TEST(LinearClassifier, OneScore) {
  auto test = [](const char* transform) {
    OpTest result = linear("LinearClassifier");
    result.attribute("coefficients", {1.0f}).attribute("intercepts", {0.0f}).attribute("post_transform", transform);
    return result;
  };
  test("NONE")
      .attribute("classlabels_ints", {5, 6})
      .input<float>({2, 1}, {0.25f, -1})
      .expect<int64_t>({2}, {6, 5})
      .expect<float>({2, 2}, {0.75f, 0.25f, 2, -1})
      .run();
  test("LOGISTIC")
      .attribute("classlabels_strings", std::vector<std::string>{"no", "yes"})
      .input<int32_t>({1}, {1})
      .expect<std::string>({1}, {"yes"})
      .expect<float>({1, 2}, {0.26894143f, 0.7310586f})
      .run();
  test("NONE").input<double>({1, 1}, {2}).expect<int64_t>({1}, {1}).expect<float>({1, 1}, {2}).run();
  test("PROBIT")
      .attribute("classlabels_ints", {5, 6})
      .input<float>({1, 1}, {0.6f})
      .tolerance(1e-4, 0)
      .no_output()
      .expect<float>({1, 2}, {-0.25335f, 0.25335f})
      .run();
}

TEST(MlLinear, Errors) {
  auto has = [](OpTest& test, const char* text) {
    std::string error = test.input<float>({1, 2}, {1, 2}).error();
    EXPECT_NE(error.find(text), std::string::npos) << error;
  };
  has(linear("LinearRegressor").attribute("coefficients", {1.0f}), "1 coefficients for 1 scores of 2 features");
  has(linear("LinearRegressor").attribute("targets", 0), "there are 0 targets");
  has(linear("LinearRegressor").attribute("post_transform", "LOG"), "post_transform is 'LOG'; it may be one of 'NONE'");
  has(linear("LinearClassifier").attribute("coefficients", {1.0f}).attribute("intercepts", {1.0f, 2.0f}),
      "0 labels for 2 scores");
}

}  // namespace
}  // namespace tenon

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

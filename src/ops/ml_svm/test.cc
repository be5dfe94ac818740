#include "op_test.h"
#include "ops/ml_svm/cpu_pairwise.h"

namespace tenon {
namespace {

using Ints = std::vector<int64_t>;
using Floats = std::vector<float>;

OpTest svm(const char* op) { return OpTest(op, 5, "ai.onnx.ml"); }

OpTest regressor(const char* kernel) {
  OpTest test = svm("SVMRegressor");
  test.attribute("kernel_type", kernel)
      .attribute("kernel_params", Floats{0.5f, 1, 2})
      .attribute("support_vectors", Floats{1, 0, 0, 2})
      .attribute("coefficients", Floats{1, -2})
      .attribute("n_supports", 2)
      .attribute("rho", Floats{0.25f});
  return test;
}

TEST(SVMRegressor, Kernels) {
  regressor("LINEAR").input<float>({2, 2}, {1, 1, 3, 0}).expect<float>({2, 1}, {-2.75f, 3.25f}).run();
  regressor("POLY").input<int64_t>({2}, {1, 1}).expect<float>({1, 1}, {-5.5f}).run();
  regressor("RBF").input<double>({1, 2}, {1, 1}).expect<float>({1, 1}, {0.25f + 0.6065307f - 2 * 0.3678794f}).run();
  regressor("SIGMOID")
      .input<int32_t>({1, 2}, {1, 1})
      .expect<float>({1, 1}, {0.25f + 0.9051483f - 2 * 0.9640276f})
      .run();
}

TEST(SVMRegressor, LinearAndOneClass) {
  svm("SVMRegressor")
      .attribute("coefficients", Floats{1, 2})
      .attribute("rho", Floats{1})
      .input<float>({1, 2}, {3, 4})
      .expect<float>({1, 1}, {12})
      .run();
  regressor("LINEAR").attribute("one_class", 1).input<float>({2, 2}, {1, 1, 3, 0}).expect<float>({2, 1}, {-1, 1}).run();
}

TEST(SVMClassifier, WithoutSupportVectors) {
  svm("SVMClassifier")
      .attribute("coefficients", Floats{1, 0, 0, 1, -1, -1})
      .attribute("rho", Floats{1})
      .attribute("classlabels_ints", Ints{7, 8, 9})
      .input<float>({2, 2}, {2, 1, -1, -1})
      .expect<int64_t>({2}, {7, 9})
      .expect<float>({2, 3}, {3, 2, -2, 0, 0, 3})
      .run();
}

OpTest pair(const char* transform) {
  OpTest test = svm("SVMClassifier");
  test.attribute("coefficients", Floats{1, -1})
      .attribute("support_vectors", Floats{1, -1})
      .attribute("vectors_per_class", Ints{1, 1})
      .attribute("rho", Floats{0.5f})
      .attribute("post_transform", transform);
  return test;
}

TEST(SVMClassifier, TwoClasses) {
  pair("NONE")
      .attribute("classlabels_strings", std::vector<std::string>{"a", "b"})
      .input<float>({2, 1}, {1, -1})
      .expect<std::string>({2}, {"a", "b"})
      .expect<float>({2, 2}, {-2.5f, 2.5f, 1.5f, -1.5f})
      .run();
  pair("LOGISTIC")
      .attribute("classlabels_ints", Ints{4, 5})
      .input<double>({1, 1}, {0.25})
      .expect<int64_t>({1}, {4})
      .expect<float>({1, 2}, {0.26894143f, 0.7310586f})
      .run();
  pair("NONE")
      .attribute("classlabels_ints", Ints{4, 5})
      .attribute("prob_a", Floats{-1})
      .attribute("prob_b", Floats{0})
      .input<int64_t>({1}, {0})
      .expect<int64_t>({1}, {4})
      .expect<float>({1, 2}, {0.6224593f, 0.3775407f})
      .tolerance(1e-2, 0)
      .run();
}

TEST(SVMClassifier, ThreeClassesVote) {
  svm("SVMClassifier")
      .attribute("coefficients", Floats{1, -1, 0, 1, 1, -1})
      .attribute("support_vectors", Floats{1, 2, 3})
      .attribute("vectors_per_class", Ints{1, 1, 1})
      .attribute("rho", Floats{0, 0, 0})
      .attribute("classlabels_ints", Ints{4, 5, 6})
      .input<float>({1, 1}, {1})
      .expect<int64_t>({1}, {4})
      .expect<float>({1, 3}, {-1, 1, -1})
      .run();
}

TEST(PairwiseCoupling, KeepsConsistentProbabilities) {
  // 0.5, 0.3 and 0.2 against each other.
  Floats pairs{0.625f, 0.5f / 0.7f, 0.6f}, probabilities(3);
  ops::couple_pairwise_probabilities(pairs, probabilities);
  EXPECT_NEAR(probabilities[0], 0.5, 1e-2);
  EXPECT_NEAR(probabilities[1], 0.3, 1e-2);
  EXPECT_NEAR(probabilities[2], 0.2, 1e-2);
}

TEST(MlSvm, Errors) {
  auto has = [](OpTest& test, const char* text) {
    std::string error = test.input<float>({1, 1}, {1}).error();
    EXPECT_NE(error.find(text), std::string::npos) << error;
  };
  has(regressor("LINEAR").attribute("kernel_type", "CUBIC"), "kernel_type is 'CUBIC'");
  has(regressor("LINEAR").attribute("kernel_params", Floats{1}), "it has 1 numbers");
  has(regressor("LINEAR").attribute("rho", Floats{}), "rho has 0 numbers, 1 are needed");
  has(regressor("LINEAR").attribute("n_supports", 2), "support_vectors has 4 numbers for 2 vectors of 1 features");
  has(pair("NONE").attribute("classlabels_ints", Ints{1, 2, 3}), "vectors_per_class has 2 entries for 3 classes");
  has(pair("NONE").attribute("classlabels_ints", Ints{1, 2}).attribute("vectors_per_class", Ints{-1, 3}),
      "vectors_per_class holds -1");
  has(pair("NONE").attribute("classlabels_ints", Ints{}), "must name the classes");
}

}  // namespace
}  // namespace tenon

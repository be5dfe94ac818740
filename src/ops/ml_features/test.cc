#include <cmath>

#include "op_test.h"

namespace tenon {
namespace {

using Ints = std::vector<int64_t>;
using Floats = std::vector<float>;

constexpr float nan = std::numeric_limits<float>::quiet_NaN();

OpTest ml(const char* op) { return OpTest(op, 5, "ai.onnx.ml"); }

TEST(ArrayFeatureExtractor, LastAxis) {
  ml("ArrayFeatureExtractor")
      .input<float>({2, 3}, {1, 2, 3, 4, 5, 6})
      .input<int64_t>({1, 2}, {2, 0})
      .expect<float>({2, 2}, {3, 1, 6, 4})
      .run();
  ml("ArrayFeatureExtractor")
      .input<std::string>({2}, {"a", "b"})
      .constant<int64_t>({}, {1})
      .expect<std::string>({1, 1}, {"b"})
      .run();
  ml("ArrayFeatureExtractor").input<double>({1, 1, 1}, {7}).input<int64_t>({0}, {}).expect<double>({1, 1, 0}, {}).run();
  EXPECT_NE(ml("ArrayFeatureExtractor")
                .input<int32_t>({2}, {1, 2})
                .input<int64_t>({1}, {-1})
                .error()
                .find("feature -1 is asked for, the last axis has 2"),
            std::string::npos);
}

TEST(Binarizer, Types) {
  ml("Binarizer")
      .attribute("threshold", 1.5f)
      .input<float>({4}, {1, 1.5f, 2, nan})
      .expect<float>({4}, {0, 0, 1, 0})
      .run();
  ml("Binarizer").input<double>({2}, {-1, 1e-300}).expect<double>({2}, {0, 1}).run();
  ml("Binarizer").attribute("threshold", 1.5f).input<int32_t>({}, {2}).expect<int32_t>({}, {1}).run();
  ml("Binarizer").input<int64_t>({2}, {0, 1}).expect<int64_t>({2}, {0, 1}).run();
}

TEST(FeatureVectorizer, SideBySide) {
  ml("FeatureVectorizer")
      .input<int64_t>({2, 2}, {1, 2, 3, 4})
      .input<int64_t>({2, 1}, {5, 6})
      .expect<float>({2, 3}, {1, 2, 5, 3, 4, 6})
      .run();
  // Cut off and filled up to the widths that are given.
  ml("FeatureVectorizer")
      .attribute("inputdimensions", Ints{1, 2})
      .input<double>({2}, {1, 2})
      .input<double>({1, 1}, {3})
      .expect<float>({1, 3}, {1, 3, 0})
      .run();
  EXPECT_NE(ml("FeatureVectorizer").input<float>({2, 1}, {1, 2}).input<float>({1, 1}, {1}).error().find("2 against 1"),
            std::string::npos);
}

TEST(Imputer, ReplacesByFeature) {
  ml("Imputer")
      .attribute("imputed_value_floats", Floats{8, 9})
      .attribute("replaced_value_float", nan)
      .input<float>({2, 2}, {nan, 1, 2, nan})
      .expect<float>({2, 2}, {8, 1, 2, 9})
      .run();
  ml("Imputer")
      .attribute("imputed_value_floats", Floats{8})
      .input<double>({2}, {0, 1})
      .expect<double>({2}, {8, 1})
      .run();
  ml("Imputer")
      .attribute("imputed_value_int64s", Ints{8})
      .attribute("replaced_value_int64", 1)
      .input<int32_t>({2}, {0, 1})
      .expect<int32_t>({2}, {0, 8})
      .run();
  ml("Imputer").attribute("imputed_value_int64s", Ints{8}).input<int64_t>({}, {0}).expect<int64_t>({}, {8}).run();
}

TEST(Normalizer, Norms) {
  auto test = [](const char* norm) {
    OpTest result = ml("Normalizer");
    result.attribute("norm", norm).input<float>({2, 2}, {3, -4, 0, 0});
    return result;
  };
  test("MAX").expect<float>({2, 2}, {1, -4.0f / 3, 0, 0}).run();
  test("L1").expect<float>({2, 2}, {3.0f / 7, -4.0f / 7, 0, 0}).run();
  test("L2").expect<float>({2, 2}, {0.6f, -0.8f, 0, 0}).run();
  // Vectors and a rest.
  ml("Normalizer")
      .attribute("norm", "L1")
      .input<float>({1, 11}, {1, -1, 2, -2, 1, 1, -4, 0, 1, -2, 1})
      .expect<float>({1, 11},
                     {0.0625f, -0.0625f, 0.125f, -0.125f, 0.0625f, 0.0625f, -0.25f, 0, 0.0625f, -0.125f, 0.0625f})
      .run();
  ml("Normalizer").input<int64_t>({2}, {1, 4}).expect<float>({2}, {0.25f, 1}).run();
  ml("Normalizer").input<double>({1, 0}, {}).expect<float>({1, 0}, {}).run();
}

TEST(Scaler, OneOrPerFeature) {
  ml("Scaler")
      .attribute("offset", Floats{1, 2})
      .attribute("scale", Floats{2, 0.5f})
      .input<int32_t>({2, 2}, {1, 2, 3, 4})
      .expect<float>({2, 2}, {0, 0, 4, 1})
      .run();
  ml("Scaler").attribute("scale", Floats{2}).input<double>({2}, {1, 2}).expect<float>({2}, {2, 4}).run();
  ml("Scaler").attribute("offset", Floats{1}).input<float>({1, 1, 2}, {1, 2}).expect<float>({1, 1, 2}, {0, 1}).run();
}

TEST(MlFeatures, Errors) {
  auto has = [](OpTest& test, const char* text) {
    std::string error = test.input<int32_t>({1, 2}, {1, 2}).error();
    EXPECT_NE(error.find(text), std::string::npos) << error;
  };
  has(ml("Scaler").attribute("scale", Floats{1, 2, 3}), "scale has 3 numbers for 2 features");
  has(ml("Normalizer").attribute("norm", "L3"), "norm is 'L3'");
  has(ml("Imputer").attribute("imputed_value_floats", Floats{1}), "needs the attribute imputed_value_int64s");
  has(ml("Imputer").attribute("imputed_value_int64s", Ints{1, 2, 3}), "imputed_value_int64s has 3 numbers");
  has(ml("Imputer").attribute("imputed_value_int64s", Ints{int64_t{1} << 40}), "which is no int32");
  has(ml("FeatureVectorizer").attribute("inputdimensions", Ints{1, 2}), "2 entries for 1 inputs");
}

}  // namespace
}  // namespace tenon

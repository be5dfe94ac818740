#include <limits>

#include "op_test.h"

namespace tenon {
namespace {

using Ints = std::vector<int64_t>;
using Floats = std::vector<float>;
using Strings = std::vector<std::string>;

constexpr float nan = std::numeric_limits<float>::quiet_NaN();

OpTest ml(const char* op, int64_t version = 5) { return OpTest(op, version, "ai.onnx.ml"); }

TEST(CategoryMapper, BothWays) {
  auto mapper = [] {
    OpTest test = ml("CategoryMapper");
    test.attribute("cats_strings", Strings{"a", "b"}).attribute("cats_int64s", Ints{10, 20});
    return test;
  };
  mapper().input<std::string>({1, 2}, {"b", "c"}).expect<int64_t>({1, 2}, {20, -1}).run();
  mapper().attribute("default_int64", 7).input<std::string>({}, {"c"}).expect<int64_t>({}, {7}).run();
  mapper().input<int64_t>({2}, {10, 11}).expect<std::string>({2}, {"a", "_Unused"}).run();
}

TEST(LabelEncoder, FirstVersion) {
  auto encoder = [] {
    OpTest test = ml("LabelEncoder", 1);
    test.attribute("classes_strings", Strings{"a", "b"});
    return test;
  };
  encoder().input<std::string>({2}, {"b", "c"}).expect<int64_t>({2}, {1, -1}).run();
  encoder().attribute("default_string", "?").input<int64_t>({2}, {0, 2}).expect<std::string>({2}, {"a", "?"}).run();
}

TEST(LabelEncoder, Lists) {
  ml("LabelEncoder", 2)
      .attribute("keys_strings", Strings{"a", "b", "a"})
      .attribute("values_int64s", Ints{1, 2, 3})
      .input<std::string>({3}, {"a", "b", "c"})
      .expect<int64_t>({3}, {3, 2, -1})
      .run();
  ml("LabelEncoder")
      .attribute("keys_floats", Floats{nan, 0})
      .attribute("values_strings", Strings{"missing", "zero"})
      .input<float>({3}, {nan, -0.0f, 1})
      .expect<std::string>({3}, {"missing", "zero", "_Unused"})
      .run();
  ml("LabelEncoder")
      .attribute("keys_int64s", Ints{1})
      .attribute("values_floats", Floats{0.5f})
      .attribute("default_float", 9.0f)
      .input<int64_t>({2}, {1, 2})
      .expect<float>({2}, {0.5f, 9})
      .run();
}

TEST(LabelEncoder, Tensors) {
  ml("LabelEncoder")
      .attribute("keys_tensor", Tensor(Shape{2}, {int16_t{1}, int16_t{2}}))
      .attribute("values_tensor", Tensor(Shape{2}, {0.25, 0.5}))
      .attribute("default_tensor", Tensor(Shape{1}, {7.0}))
      .input<int16_t>({2}, {2, 3})
      .expect<double>({2}, {0.5, 7})
      .run();
  ml("LabelEncoder")
      .attribute("keys_tensor", Tensor(Shape{1}, {1.5}))
      .attribute("values_tensor", Tensor(Shape{1}, {int16_t{4}}))
      .input<double>({2}, {1.5, 2})
      .expect<int16_t>({2}, {4, -1})
      .run();
  ml("LabelEncoder")
      .attribute("keys_strings", Strings{"a"})
      .attribute("values_tensor", Tensor(Shape{1}, {int32_t{4}}))
      .input<std::string>({2}, {"a", "b"})
      .expect<int32_t>({2}, {4, -1})
      .run();
}

TEST(OneHotEncoder, Categories) {
  ml("OneHotEncoder")
      .attribute("cats_int64s", Ints{1, 2})
      .input<int64_t>({3}, {2, 1, 9})
      .expect<float>({3, 2}, {0, 1, 1, 0, 0, 0})
      .run();
  ml("OneHotEncoder")
      .attribute("cats_strings", Strings{"a", "b"})
      .input<std::string>({1, 1}, {"b"})
      .expect<float>({1, 1, 2}, {0, 1})
      .run();
  ml("OneHotEncoder")
      .attribute("cats_int64s", Ints{1, 2})
      .input<float>({3}, {2.5f, nan, 1e30f})
      .expect<float>({3, 2}, {0, 1, 0, 0, 0, 0})
      .run();
  ml("OneHotEncoder").attribute("cats_int64s", Ints{1}).input<double>({}, {1}).expect<float>({1}, {1}).run();
  ml("OneHotEncoder").attribute("cats_int64s", Ints{1}).input<int32_t>({0}, {}).expect<float>({0, 1}, {}).run();
}

TEST(MlEncode, Errors) {
  auto has = [](OpTest& test, const char* text) {
    std::string error = test.input<int64_t>({1}, {1}).error();
    EXPECT_NE(error.find(text), std::string::npos) << error;
  };
  has(ml("OneHotEncoder").attribute("cats_int64s", Ints{2}).attribute("zeros", 0), "element 0 is in no category");
  has(ml("OneHotEncoder").attribute("zeros", 0), "one of cats_int64s and cats_strings must be given");
  has(ml("OneHotEncoder").attribute("cats_strings", Strings{"a"}), "the categories are strings, the input is int64");
  has(ml("CategoryMapper").attribute("cats_strings", Strings{"a"}), "0 cats_int64s and 1 cats_strings");
  has(ml("LabelEncoder").attribute("keys_int64s", Ints{1}), "values_floats and values_tensor must be given, 0 are");
  has(ml("LabelEncoder").attribute("keys_int64s", Ints{1}).attribute("values_int64s", Ints{}), "1 keys and 0 values");
  has(ml("LabelEncoder").attribute("keys_floats", Floats{1}).attribute("values_int64s", Ints{1}), "the keys are float");
  has(ml("LabelEncoder")
          .attribute("keys_int64s", Ints{1})
          .attribute("values_int64s", Ints{1})
          .attribute("default_tensor", Tensor(Shape{1}, {1.0f})),
      "one of type int64 is needed");
}

}  // namespace
}  // namespace tenon

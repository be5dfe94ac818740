#include "op_test.h"

namespace tenon {
namespace {

OpTest optimizer(const char* name, int64_t updates, float rate = 0.1f) {
  OpTest test(name, 1, "ai.onnx.preview.training");
  test.input<float>({}, {rate}).input<int64_t>({}, {updates});
  return test;
}

TEST(Optimizer, Adagrad) {
  optimizer("Adagrad", 1)
      .attribute("norm_coefficient", 0.5f)
      .attribute("decay_factor", 1.0f)
      .attribute("epsilon", 0.0f)
      .input<float>({2}, {2, 0})
      .input<float>({2}, {2, 1})
      .input<float>({2}, {7, 8})
      .expect<float>({2}, {2 - 0.05f * 3 / 4, -0.05f / 3})
      .expect<float>({2}, {16, 9})
      .run();
}

TEST(Optimizer, AdamOfTwoTensors) {
  OpTest test = optimizer("Adam", 0);
  test.attribute("alpha", 0.5f)
      .attribute("beta", 0.75f)
      .attribute("epsilon", 0.0f)
      .attribute("norm_coefficient_post", 0.5f);
  test.input<float>({1}, {1}).input<double>({2}, {1, 2});
  test.input<float>({1}, {2}).input<double>({2}, {0, 4});
  test.input<float>({1}, {4}).input<double>({2}, {1, 2});
  test.input<float>({1}, {4}).input<double>({2}, {4, 16});
  test.expect<float>({1}, {0.5f * (1 - 0.1f * 3 / 2)})
      .expect<double>({2}, {0.5 * (1 - 0.1 * 0.5 / std::sqrt(3.0)), 0.5 * (2 - 0.1 * 3 / 4)})
      .expect<float>({1}, {3})
      .expect<double>({2}, {0.5, 3})
      .expect<float>({1}, {4})
      .expect<double>({2}, {3, 16})
      .run();
  optimizer("Adam", 2)
      .attribute("alpha", 0.5f)
      .attribute("beta", 0.75f)
      .attribute("epsilon", 0.0f)
      .input<float>({}, {1})
      .input<float>({}, {2})
      .input<float>({}, {4})
      .input<float>({}, {4})
      .expect<float>({}, {1 - 0.1f * std::sqrt(0.4375f) / 0.75f * 1.5f})
      .run();
}

TEST(Optimizer, Momentum) {
  auto momentum = [](const char* mode, int64_t updates) {
    OpTest test = optimizer("Momentum", updates);
    test.attribute("mode", mode).attribute("alpha", 0.5f).attribute("beta", 0.25f).attribute("norm_coefficient", 1.0f);
    test.input<float>({}, {1}).input<float>({}, {3}).input<float>({}, {2});
    return test;
  };
  momentum("standard", 0).expect<float>({}, {0.5f}).expect<float>({}, {5}).run();
  momentum("standard", 1).expect<float>({}, {0.8f}).expect<float>({}, {2}).run();
  momentum("nesterov", 1).expect<float>({}, {0.5f}).expect<float>({}, {2}).run();
  std::string text = momentum("fast", 1).error();
  EXPECT_NE(text.find("mode is 'fast'; it may be 'standard' or 'nesterov'"), std::string::npos) << text;
}

TEST(Optimizer, Errors) {
  auto contains = [](const std::string& text, const char* part) {
    EXPECT_NE(text.find(part), std::string::npos) << text;
  };
  contains(optimizer("Adagrad", 1).input<float>({}, {1}).input<float>({}, {1}).error(),
           "it has 2 tensors; there must be 3 for each that is optimised");
  contains(optimizer("Adagrad", 1).input<float>({}, {1}).input<float>({}, {1}).input<double>({}, {1}).error(),
           "inputs 2 and 4 have types float and double");
  contains(optimizer("Adagrad", 1).input<float>({1}, {1}).input<float>({2}, {1, 1}).input<float>({1}, {1}).error(),
           "axis 0 of inputs 2 and 3 must be equal: 1 against 2");
  contains(OpTest("Adagrad", 1, "ai.onnx.preview.training")
               .input<float>({2}, {1, 1})
               .input<int64_t>({}, {1})
               .input<float>({1}, {1})
               .input<float>({1}, {1})
               .input<float>({1}, {1})
               .error(),
           "the learning rate and the update count must be scalars");
}

}  // namespace
}  // namespace tenon

#include "op_test.h"

namespace tenon {
namespace {

const std::initializer_list<float> nine = {1, 2, 3, 4, 5, 6, 7, 8, 9};

TEST(Conv, Padding) {
  auto sum = [] {
    return std::move(OpTest("Conv").input<float>({1, 1, 3, 3}, nine).constant<float>({1, 1, 2, 2}, {1, 1, 1, 1}));
  };
  sum().expect<float>({1, 1, 2, 2}, {12, 16, 24, 28}).run();
  sum().attribute("auto_pad", "VALID").expect<float>({1, 1, 2, 2}, {12, 16, 24, 28}).run();
  sum().attribute("auto_pad", "SAME_UPPER").expect<float>({1, 1, 3, 3}, {12, 16, 9, 24, 28, 15, 15, 17, 9}).run();
  sum().attribute("auto_pad", "SAME_LOWER").expect<float>({1, 1, 3, 3}, {1, 3, 5, 5, 12, 16, 11, 24, 28}).run();
  sum().attribute("pads", {1, 0, 0, 0}).expect<float>({1, 1, 3, 2}, {3, 5, 12, 16, 24, 28}).run();
  sum().attribute("strides", {2, 1}).attribute("dilations", {1, 2}).expect<float>({1, 1, 1, 1}, {14}).run();
}

TEST(Conv, GroupsAndBias) {
  OpTest("Conv")
      .attribute("group", 2)
      .input<float>({1, 2, 2}, {1, 2, 3, 4})
      .input<float>({2, 1, 1}, {10, 100})
      .input<float>({2}, {1, 2})
      .expect<float>({1, 2, 2}, {11, 21, 302, 402})
      .run();
  OpTest("Conv")
      .input<float>({1, 1, 1, 2, 2}, {1, 2, 3, 4})
      .constant<float>({2, 1, 1, 1, 2}, {1, 1, 1, -1})
      .expect<float>({1, 2, 1, 2, 1}, {3, 7, -1, -1})
      .run();
  OpTest("Conv")
      .input<float>({1, 0, 2}, {})
      .input<float>({1, 0, 1}, {})
      .input<float>({1}, {5})
      .expect<float>({1, 1, 2}, {5, 5})
      .run();
  OpTest("Conv").input<float>({0, 1, 2}, {}).constant<float>({1, 1, 1}, {1}).expect<float>({0, 1, 2}, {}).run();
}

TEST(Conv, Types) {
  OpTest("Conv")
      .attribute("pads", {1, 0})
      .attribute("strides", {2})
      .input<double>({1, 1, 3}, {1, 2, 3})
      .input<double>({1, 1, 2}, {1, 10})
      .input<double>({1}, {0.5})
      .expect<double>({1, 1, 2}, {10.5, 32.5})
      .run();
  OpTest("Conv")
      .input<float16>({1, 1, 2}, {float16(1), float16(2)})
      .constant<float16>({1, 1, 2}, {float16(3), float16(4)})
      .expect<float16>({1, 1, 1}, {float16(11)})
      .run();
  OpTest("Conv")
      .input<bfloat16>({1, 1, 2}, {bfloat16(1), bfloat16(2)})
      .input<bfloat16>({1, 1, 2}, {bfloat16(3), bfloat16(4)})
      .expect<bfloat16>({1, 1, 1}, {bfloat16(11)})
      .run();
}

TEST(Conv, Errors) {
  auto error = [](auto&& change) {
    OpTest test("Conv");
    change(test);
    std::string text = test.error();
    return text.substr(0, text.find('\n'));
  };
  EXPECT_EQ(error([](OpTest& t) {
              t.input<float>({1, 3, 2}, {1, 2, 3, 4, 5, 6}).constant<float>({1, 2, 1}, {1, 1});
            }),
            "shape-mismatch in Conv 'tested' (node 0): the channels of X and the channels of W times group must be "
            "equal: 3 against 2");
  EXPECT_EQ(error([](OpTest& t) {
              t.attribute("strides", {0}).input<float>({1, 1, 1}, {1}).constant<float>({1, 1, 1}, {1});
            }),
            "invalid-attribute in Conv 'tested' (node 0): attribute 'strides' has 0; it must be at least 1");
  EXPECT_EQ(
      error([](OpTest& t) {
        t.attribute("pads", {0, 0, 0}).input<float>({1, 1, 1}, {1}).constant<float>({1, 1, 1}, {1});
      }),
      "invalid-attribute in Conv 'tested' (node 0): attribute 'pads' has 3 values; the input's spatial axes want 2");
  EXPECT_EQ(error([](OpTest& t) {
              t.input<float>({1, 1, 1}, {1}).constant<float>({1, 1, 3}, {1, 1, 1});
            }),
            "shape-mismatch in Conv 'tested' (node 0): the window reaches over 3 elements of axis 2, which has only 1 "
            "with its padding");
  EXPECT_EQ(error([](OpTest& t) {
              t.attribute("group", 0).input<float>({1, 1, 1}, {1}).constant<float>({1, 1, 1}, {1});
            }),
            "invalid-attribute in Conv 'tested' (node 0): group is 0; it must be at least 1");
}

TEST(ConvTranspose, Attributes) {
  auto two = [] {
    return std::move(OpTest("ConvTranspose").input<float>({1, 1, 2}, {1, 2}).input<float>({1, 1, 3}, {1, 10, 100}));
  };
  two().expect<float>({1, 1, 4}, {1, 12, 120, 200}).run();
  two().attribute("strides", {2}).expect<float>({1, 1, 5}, {1, 10, 102, 20, 200}).run();
  two()
      .attribute("strides", {2})
      .attribute("output_padding", {1})
      .expect<float>({1, 1, 6}, {1, 10, 102, 20, 200, 0})
      .run();
  two()
      .attribute("strides", {2})
      .attribute("output_shape", {6})
      .expect<float>({1, 1, 6}, {1, 10, 102, 20, 200, 0})
      .run();
  two()
      .attribute("strides", {2})
      .attribute("output_shape", {1, 1, 4})
      .expect<float>({1, 1, 4}, {10, 102, 20, 200})
      .run();
  two().attribute("strides", {2}).attribute("auto_pad", "SAME_UPPER").expect<float>({1, 1, 4}, {1, 10, 102, 20}).run();
  two()
      .attribute("strides", {2})
      .attribute("auto_pad", "SAME_LOWER")
      .expect<float>({1, 1, 4}, {10, 102, 20, 200})
      .run();
  two().attribute("pads", {1, 1}).attribute("dilations", {2}).expect<float>({1, 1, 4}, {2, 10, 20, 100}).run();
}

// Enough output channels for kernels to pack the weights.
TEST(ConvTranspose, ConstantWeights) {
  constexpr int64_t channels = 16;
  const auto test = [](const char* padding, int64_t outputs, int64_t first) {
    Tensor w(ElementType::float32, Shape{1, channels, 3});
    Tensor y(ElementType::float32, Shape{1, channels, outputs});
    for (int64_t c = 0; c < channels; ++c) {
      const auto own = static_cast<float>(c + 1);
      float* taps = w.mutable_data<float>().data() + 3 * c;
      taps[0] = 1, taps[1] = own, taps[2] = 100;
      // Outputs of a stride of 2: one input times the tap in the middle, or two times those beside it.
      const float all[] = {1, own, 102, 2 * own, 203, 3 * own, 300};
      std::copy_n(all + first, outputs, y.mutable_data<float>().begin() + c * outputs);
    }
    OpTest("ConvTranspose")
        .attribute("strides", {2})
        .attribute("auto_pad", padding)
        .input<float>({1, 1, 3}, {1, 2, 3})
        .constant(w)
        .expect(y)
        .run();
  };
  test("VALID", 7, 0);
  test("SAME_UPPER", 6, 0);
  test("SAME_LOWER", 6, 1);
}

TEST(ConvTranspose, Types) {
  OpTest("ConvTranspose")
      .attribute("group", 2)
      .input<double>({1, 2, 2}, {1, 2, 3, 4})
      .input<double>({2, 1, 2}, {1, 10, 1, 100})
      .input<double>({2}, {0, 1000})
      .expect<double>({1, 2, 3}, {1, 12, 20, 1003, 1304, 1400})
      .run();
  OpTest("ConvTranspose")
      .input<float16>({1, 1, 1}, {float16(2)})
      .input<float16>({1, 1, 2}, {float16(3), float16(4)})
      .expect<float16>({1, 1, 2}, {float16(6), float16(8)})
      .run();
}

TEST(Conv, PaddingExceedsMemory) {
  constexpr int64_t far = 1 << 24;
  std::string error = OpTest("Conv")
                          .attribute("pads", {far, far, far, far})
                          .attribute("strides", {far, far})
                          .input<float>({1, 1, 1, 1}, {1})
                          .input<float>({1, 1, 1, 1}, {1})
                          .expect(Tensor(ElementType::float32, Shape{1, 1, 3, 3}))
                          .error();
  EXPECT_TRUE(error.starts_with("out-of-memory in Conv 'tested' (node 0)")) << error;
}

OpTest fused_conv() {
  OpTest test("FusedConv", 1, "tenon");
  test.input<float>({1, 1, 2, 2}, {1, 2, 3, -4}).constant<float>({2, 1, 1, 1}, {1, -2}).input<float>({2}, {0.5f, 1});
  return test;
}

TEST(FusedConv, AddsResidualAndActivates) {
  fused_conv().expect<float>({1, 2, 2, 2}, {1.5f, 2.5f, 3.5f, -3.5f, -1, -3, -5, 9}).run();
  fused_conv()
      .attribute("activation", "Relu")
      .input<float>({1, 2, 2, 2}, {-2, 1, 1, 1, 0, 4, 0, 0})
      .expect<float>({1, 2, 2, 2}, {0, 3.5f, 4.5f, 0, 0, 1, 0, 9})
      .run();
  fused_conv()
      .attribute("activation", "Clip")
      .attribute("activation_params", std::vector<float>{-1, 2})
      .expect<float>({1, 2, 2, 2}, {1.5f, 2, 2, -1, -1, -1, -1, 2})
      .run();
  OpTest("FusedConv", 1, "tenon")
      .attribute("activation", "HardSwish")
      .input<float>({1, 0, 2}, {})
      .input<float>({1, 0, 1}, {})
      .input<float>({1}, {1})
      .input<float>({1, 1, 2}, {2, -5})
      .expect<float>({1, 1, 2}, {3, 0})
      .run();
}

TEST(FusedConv, EveryActivation) {
  const std::vector<std::pair<const char*, float>> at_one = {{"Sigmoid", 0.7310586f}, {"Tanh", 0.7615942f},
                                                             {"Swish", 0.7310586f},   {"HardSwish", 2 / 3.0f},
                                                             {"Gelu", 0.8413447f},    {"TanhGelu", 0.8411920f}};
  for (const auto& [name, expected] : at_one) {
    OpTest("FusedConv", 1, "tenon")
        .attribute("activation", name)
        .attribute("group", 2)
        .input<float>({1, 2, 1}, {1, 1})
        .constant<float>({2, 1, 1}, {1, 1})
        .expect<float>({1, 2, 1}, {expected, expected})
        .run();
  }
}

TEST(FusedConv, Errors) {
  std::string text = fused_conv().input<float>({1, 2, 2, 1}, {1, 2, 3, 4}).error();
  EXPECT_EQ(text.substr(0, text.find('\n')),
            "shape-mismatch in tenon.FusedConv 'tested' (node 0): the sizes of residual and output must be equal: 1 "
            "against 2");
  EXPECT_EQ(fused_conv().attribute("activation", "Softmax").error(),
            "invalid-attribute in tenon.FusedConv 'tested' (node 0): activation 'Softmax' cannot be fused");
  EXPECT_EQ(fused_conv().attribute("activation", "Clip").error(),
            "invalid-attribute in tenon.FusedConv 'tested' (node 0): activation 'Clip' has 2 activation_params, not 0");
}

}  // namespace
}  // namespace tenon

#include "op_test.h"

namespace tenon {
namespace {

TEST(Activation, Defaults) {
  OpTest("HardSigmoid").input<float>({3}, {-5, 1, 5}).expect<float>({3}, {0, 0.7f, 1}).run();
  OpTest("LeakyRelu").input<float>({2}, {-1, 1}).expect<float>({2}, {-0.01f, 1}).run();
  OpTest("Elu").input<float>({2}, {-1, 1}).expect<float>({2}, {-0.6321206f, 1}).run();
  OpTest("Selu").input<float>({2}, {-1, 1}).expect<float>({2}, {-1.1113307f, 1.0507010f}).run();
  OpTest("Celu").input<float>({2}, {-1, 1}).expect<float>({2}, {-0.6321206f, 1}).run();
  OpTest("ThresholdedRelu").input<float>({3}, {-1, 1, 2}).expect<float>({3}, {0, 0, 2}).run();
  OpTest("Swish").input<float>({2}, {-1, 1}).expect<float>({2}, {-0.2689414f, 0.7310586f}).run();
  OpTest("Gelu").input<float>({3}, {-1, 0, 1}).expect<float>({3}, {-0.1586553f, 0, 0.8413447f}).run();
  OpTest("Shrink").input<float>({3}, {-1, 0.5f, 1}).expect<float>({3}, {-1, 0, 1}).run();
}

TEST(Activation, Attributes) {
  OpTest("HardSigmoid")
      .attribute("alpha", 0.5f)
      .attribute("beta", 0.25f)
      .input<double>({1}, {1})
      .expect<double>({1}, {0.75})
      .run();
  OpTest("LeakyRelu")
      .attribute("alpha", 0.5f)
      .input<float16>({1}, {float16(-1)})
      .expect<float16>({1}, {float16(-0.5f)})
      .run();
  OpTest("Celu").attribute("alpha", 2.0f).input<float>({1}, {-1}).expect<float>({1}, {-0.7869387f}).run();
  OpTest("Swish").attribute("alpha", 2.0f).input<float>({1}, {1}).expect<float>({1}, {0.8807970f}).run();
  OpTest("Gelu").attribute("approximate", "tanh").input<float>({1}, {1}).expect<float>({1}, {0.8411920f}).run();
  OpTest("Gelu").attribute("approximate", "tanh").input<double>({1}, {1}).expect<double>({1}, {0.8411920}).run();
  OpTest("Shrink")
      .attribute("lambd", 1.5f)
      .attribute("bias", 1.5f)
      .input<int32_t>({3}, {-2, 1, 2})
      .expect<int32_t>({3}, {0, 0, 0})
      .run();
}

TEST(Activation, LongerThanAVector) {
  OpTest("HardSigmoid")
      .input<float>({6}, {-10, 0, 10, NAN, 1, INFINITY})
      .expect<float>({6}, {0, 0.5f, 1, NAN, 0.7f, 1})
      .run();
  OpTest("Elu")
      .input<float>({6}, {-INFINITY, -1e-6f, 2, NAN, -1, INFINITY})
      .expect<float>({6}, {-1, -9.999995e-7f, 2, NAN, -0.63212056f, INFINITY})
      .run();
}

TEST(Activation, OldVersions) {
  OpTest("Selu", 1).input<float>({1}, {1}).expect<float>({1}, {1.0507f}).tolerance(1e-8, 0).run();
  OpTest("Elu", 1)
      .attribute("consumed_inputs", std::vector<int64_t>{0})
      .input<float>({1}, {1})
      .expect<float>({1}, {1})
      .run();
}

TEST(Activation, Errors) {
  EXPECT_EQ(OpTest("Gelu").attribute("approximate", "fast").input<float>({1}, {1}).error(),
            "invalid-attribute in Gelu 'tested' (node 0): approximate is 'fast', it must be none or tanh");
  EXPECT_EQ(OpTest("Celu").attribute("alpha", 0.0f).input<float>({1}, {1}).error(),
            "invalid-attribute in Celu 'tested' (node 0): alpha is 0, Celu divides by it");
}

}  // namespace
}  // namespace tenon

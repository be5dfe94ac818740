#include "op_test.h"

namespace tenon {
namespace {

// One batch, two channels, three taps.
OpTest conv() {
  OpTest test("CausalConvWithState");
  test.input<float>({1, 2, 4}, {1, 2, 3, 4, 5, 6, 7, 8}).constant<float>({2, 1, 3}, {1, 10, 100, 0, 0, 1});
  return test;
}

TEST(CausalConv, LooksOnlyBack) {
  conv().expect<float>({1, 2, 4}, {100, 210, 321, 432, 5, 6, 7, 8}).expect<float>({1, 2, 2}, {3, 4, 7, 8}).run();
  conv()
      .input<float>({2}, {0.5f, -1})
      .input<float>({1, 2, 2}, {7, 8, 0, 0})
      .expect<float>({1, 2, 4}, {187.5f, 218.5f, 321.5f, 432.5f, 4, 5, 6, 7})
      .expect<float>({1, 2, 2}, {3, 4, 7, 8})
      .run();
}

TEST(CausalConv, ShorterThanTheKernel) {
  auto step = [] {
    OpTest test("CausalConvWithState");
    test.input<float>({1, 1, 1}, {5}).input<float>({1, 1, 3}, {1, 10, 100}).no_input();
    return test;
  };
  step().input<float>({1, 1, 2}, {3, 4}).expect<float>({1, 1, 1}, {543}).expect<float>({1, 1, 2}, {4, 5}).run();
  step().expect<float>({1, 1, 1}, {500}).expect<float>({1, 1, 2}, {0, 5}).run();
  OpTest("CausalConvWithState")
      .input<float>({1, 1, 2}, {5, 6})
      .input<float>({1, 1, 1}, {2})
      .expect<float>({1, 1, 2}, {10, 12})
      .expect<float>({1, 1, 0}, {})
      .run();
  OpTest("CausalConvWithState")
      .input<float>({1, 1, 0}, {})
      .input<float>({1, 1, 2}, {2, 3})
      .expect<float>({1, 1, 0}, {})
      .expect<float>({1, 1, 1}, {0})
      .run();
}

TEST(CausalConv, EmptyBatchOfAnySize) {
  constexpr int64_t many = int64_t{1} << 30;
  OpTest("CausalConvWithState")
      .input<float>({many, 1, 0}, {})
      .input<float>({1, 1, 1}, {2})
      .expect<float>({many, 1, 0}, {})
      .expect<float>({many, 1, 0}, {})
      .run();
}

TEST(CausalConv, ActivationAndTypes) {
  for (const char* activation : {"silu", "swish"}) {
    OpTest("CausalConvWithState")
        .attribute("activation", activation)
        .input<float16>({1, 1, 1}, {float16(1)})
        .input<float16>({1, 1, 1}, {float16(2)})
        .expect<float16>({1, 1, 1}, {float16(1.7615942f)})
        .expect<float16>({1, 1, 0}, {})
        .run();
  }
  OpTest("CausalConvWithState")
      .input<bfloat16>({1, 1, 1}, {bfloat16(1)})
      .input<bfloat16>({1, 1, 1}, {bfloat16(2)})
      .expect<bfloat16>({1, 1, 1}, {bfloat16(2)})
      .expect<bfloat16>({1, 1, 0}, {})
      .run();
}

TEST(CausalConv, Errors) {
  auto contains = [](const std::string& text, const char* part) {
    EXPECT_NE(text.find(part), std::string::npos) << text;
  };
  contains(conv().attribute("activation", "relu").error(), "activation is 'relu'; it may be 'none', 'silu' or 'swish'");
  contains(conv().input<float>({1}, {1}).error(), "the channels and the size of bias");
  contains(conv().no_input().input<float>({1, 2, 1}, {1, 1}).error(),
           "the kernel's size less 1 and axis 2 of past_state");
  contains(OpTest("CausalConvWithState").input<float>({1, 1, 1}, {1}).input<float>({1, 1, 0}, {}).error(),
           "the kernel has size 0; it must be at least 1");
}

}  // namespace
}  // namespace tenon

#include "op_test.h"

namespace tenon {
namespace {

TEST(DeformConv, OffsetsAndMask) {
  auto test = [] {
    OpTest t("DeformConv");
    t.input<float>({1, 1, 1, 3}, {1, 2, 4})
        .input<float>({1, 1, 1, 1}, {10})
        .input<float>({1, 2, 1, 3}, {0, 0, 0, 0.5f, 1, 1});
    return t;
  };
  test().expect<float>({1, 1, 1, 3}, {15, 40, 0}).run();
  test().input<float>({1}, {1}).input<float>({1, 1, 1, 3}, {1, 0.5f, 1}).expect<float>({1, 1, 1, 3}, {16, 21, 1}).run();
  OpTest("DeformConv", 19)
      .input<double>({1, 1, 1, 1}, {3})
      .input<double>({1, 1, 1, 1}, {2})
      .input<double>({1, 2, 1, 1}, {0, 0.5})
      .expect<double>({1, 1, 1, 1}, {3})
      .run();
}

// Three channels; positions between four pixels, beside the edges, and far outside.
TEST(DeformConv, Positions) {
  OpTest("DeformConv")
      .input<float>({1, 3, 2, 2}, {1, 2, 3, 4, 10, 20, 30, 40, 100, 200, 300, 400})
      .input<float>({1, 3, 1, 1}, {1, 1, 1})
      .input<float>({1, 2, 2, 2}, {0.5f, -0.5f, 0.25f, 9, 0.5f, 0, 0, 0})
      .expect<float>({1, 1, 2, 2}, {277.5f, 111, 249.75f, 0})
      .run();
}

TEST(DeformConv, Errors) {
  std::string text = OpTest("DeformConv")
                         .input<float>({1, 1, 1, 1}, {1})
                         .input<float>({1, 1, 1, 1}, {1})
                         .input<float>({1, 1, 1, 1}, {1})
                         .error();
  EXPECT_EQ(text.substr(0, text.find('\n')),
            "shape-mismatch in DeformConv 'tested' (node 0): the channels of offset and the taps of the kernel must be "
            "equal: 1 against 2");
}

}  // namespace
}  // namespace tenon

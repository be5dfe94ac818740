#include "op_test.h"

namespace tenon {
namespace {

TEST(Col2Im, OverlapsAdd) {
  OpTest("Col2Im")
      .input<float>({1, 2, 2}, {1, 2, 3, 4})
      .constant<int64_t>({2}, {1, 3})
      .constant<int64_t>({2}, {1, 2})
      .expect<float>({1, 1, 1, 3}, {1, 5, 4})
      .run();
  OpTest("Col2Im")
      .attribute("strides", {1, 2})
      .input<int64_t>({1, 4, 1}, {1, 2, 3, 4})
      .input<int64_t>({2}, {1, 3})
      .input<int64_t>({2}, {1, 2})
      .expect<int64_t>({1, 2, 1, 3}, {1, 2, 0, 3, 4, 0})
      .run();
  OpTest("Col2Im")
      .attribute("pads", {0, 1, 0, 1})
      .input<float16>({1, 1, 4}, {float16(1), float16(2), float16(3), float16(4)})
      .input<int64_t>({2}, {1, 2})
      .input<int64_t>({2}, {1, 1})
      .expect<float16>({1, 1, 1, 2}, {float16(2), float16(3)})
      .run();
}

TEST(Col2Im, Errors) {
  EXPECT_EQ(OpTest("Col2Im")
                .input<float>({1, 2, 3}, {1, 2, 3, 4, 5, 6})
                .input<int64_t>({2}, {1, 3})
                .input<int64_t>({2}, {1, 2})
                .error(),
            "shape-mismatch in Col2Im 'tested' (node 0): the input has 3 blocks; 2 fit into the image");
}

}  // namespace
}  // namespace tenon

#include <algorithm>

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

// Rows of several vectors and a rest, some of which are cut off at the border and some of which go on from each other.
TEST(Col2Im, LongRows) {
  constexpr int64_t height = 3, width = 11, blocks = height * width;
  Tensor x(ElementType::float32, Shape{1, 2 * 9, blocks}), y(ElementType::float32, Shape{1, 2, height, width});
  auto in = x.mutable_data<float>(), out = y.mutable_data<float>();
  for (size_t i = 0; i < in.size(); ++i) in[i] = static_cast<float>(i * 7 % 101);
  std::ranges::fill(out, 0.0f);
  for (int64_t plane = 0; plane < 2; ++plane) {
    for (int64_t tap = 0; tap < 9; ++tap) {
      for (int64_t block = 0; block < blocks; ++block) {
        const int64_t row = block / width + tap / 3 - 1, column = block % width + tap % 3 - 1;
        if (row < 0 || row >= height || column < 0 || column >= width) continue;
        out[static_cast<size_t>((plane * height + row) * width + column)] +=
            in[static_cast<size_t>((plane * 9 + tap) * blocks + block)];
      }
    }
  }
  OpTest("Col2Im")
      .attribute("pads", {1, 1, 1, 1})
      .input(x)
      .constant<int64_t>({2}, {height, width})
      .constant<int64_t>({2}, {3, 3})
      .expect(y)
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

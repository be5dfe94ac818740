#include "op_test.h"

namespace tenon {
namespace {

OpTest unpool() {
  OpTest test("MaxUnpool");
  test.attribute("kernel_shape", {2}).attribute("strides", {2}).input<float>({1, 1, 2}, {5, 6});
  return test;
}

TEST(MaxUnpool, Shapes) {
  unpool().input<int64_t>({1, 1, 2}, {1, 2}).expect<float>({1, 1, 4}, {0, 5, 6, 0}).run();
  unpool()
      .input<int64_t>({1, 1, 2}, {1, 2})
      .input<int64_t>({3}, {1, 1, 5})
      .expect<float>({1, 1, 5}, {0, 5, 6, 0, 0})
      .run();
}

// Indices count all elements, and nothing keeps them from leaving their plane.
TEST(MaxUnpool, Planes) {
  const auto planes = [](std::initializer_list<int64_t> indices, std::initializer_list<float> y) {
    OpTest("MaxUnpool")
        .attribute("kernel_shape", {2})
        .attribute("strides", {2})
        .input<float>({1, 3, 1}, {5, 6, 7})
        .input<int64_t>({1, 3, 1}, indices)
        .expect<float>({1, 3, 2}, y)
        .run();
  };
  planes({1, 2, 5}, {0, 5, 6, 0, 0, 7});
  planes({5, 2, 1}, {0, 7, 6, 0, 0, 5});
  planes({4, 4, 4}, {0, 0, 0, 0, 7, 0});
}

TEST(MaxUnpool, Errors) {
  EXPECT_EQ(unpool().input<int64_t>({1, 1, 2}, {1, 9}).error(),
            "invalid-value in MaxUnpool 'tested' (node 0): index 9 is out of range for an image of shape [1, 1, 4]");
}

}  // namespace
}  // namespace tenon

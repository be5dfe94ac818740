#include "op_test.h"

namespace tenon {
namespace {

OpTest align(int64_t opset = ops::newest_opset) {
  OpTest test("RoiAlign", opset);
  test.attribute("sampling_ratio", 1).input<float>({1, 1, 2, 2}, {1, 2, 3, 4}).input<float>({1, 4}, {0, 0, 2, 2});
  return test;
}

TEST(RoiAlign, Modes) {
  align().input<int64_t>({1}, {0}).expect<float>({1, 1, 1, 1}, {2.5f}).run();
  align().attribute("output_width", 2).input<int64_t>({1}, {0}).expect<float>({1, 1, 1, 2}, {2, 3}).run();
  align(10).input<int64_t>({1}, {0}).expect<float>({1, 1, 1, 1}, {4}).run();
  align().attribute("mode", "max").input<int64_t>({1}, {0}).expect<float>({1, 1, 1, 1}, {1}).run();
}

TEST(RoiAlign, Errors) {
  EXPECT_EQ(align().input<int64_t>({1}, {1}).error(),
            "invalid-value in RoiAlign 'tested' (node 0): region 0 is of image 1; there are 1 images");
}

TEST(MaxRoiPool, Bins) {
  OpTest("MaxRoiPool")
      .attribute("pooled_shape", {1, 2})
      .input<float>({1, 1, 2, 2}, {1, 2, 3, 4})
      .input<float>({1, 5}, {0, 0, 0, 1, 1})
      .expect<float>({1, 1, 1, 2}, {3, 4})
      .run();
  OpTest("MaxRoiPool", 1)
      .attribute("pooled_shape", {1, 1})
      .attribute("spatial_scale", 0.5f)
      .input<double>({1, 1, 2, 2}, {1, 2, 3, 4})
      .input<double>({1, 5}, {0, 0, 0, 0, 0})
      .expect<double>({1, 1, 1, 1}, {1})
      .run();
}

}  // namespace
}  // namespace tenon

#include "op_test.h"

namespace tenon {
namespace {

OpTest sample(const char* mode, const char* padding, int64_t opset = ops::newest_opset) {
  OpTest test("GridSample", opset);
  test.attribute("mode", mode).attribute("padding_mode", padding).attribute("align_corners", 1);
  return test;
}

TEST(GridSample, Modes) {
  sample("linear", "zeros")
      .input<float>({1, 1, 3}, {1, 2, 4})
      .input<float>({1, 3, 1}, {-1, 0.5f, 1.5f})
      .expect<float>({1, 1, 3}, {1, 3, 2})
      .run();
  sample("linear", "border")
      .input<float>({1, 1, 3}, {1, 2, 4})
      .input<float>({1, 2, 1}, {-3, 1.5f})
      .expect<float>({1, 1, 2}, {1, 4})
      .run();
  sample("linear", "reflection")
      .input<float>({1, 1, 3}, {1, 2, 4})
      .input<float>({1, 2, 1}, {-1.5f, 2})
      .expect<float>({1, 1, 2}, {1.5f, 2})
      .run();
  sample("nearest", "zeros")
      .input<std::string>({1, 1, 2}, {"a", "b"})
      .input<float>({1, 3, 1}, {-1, 1, 4})
      .expect<std::string>({1, 1, 3}, {"a", "b", ""})
      .run();
  sample("bilinear", "zeros", 16)
      .input<double>({1, 1, 2, 2}, {1, 2, 3, 4})
      .input<double>({1, 1, 1, 2}, {0, 0})
      .expect<double>({1, 1, 1, 1}, {2.5})
      .run();
  sample("linear", "border")
      .input<float>({1, 1, 1}, {5})
      .input<float>({1, 2, 1}, {NAN, INFINITY})
      .expect<float>({1, 1, 2}, {5, 5})
      .run();
}

TEST(AffineGrid, Identity) {
  OpTest("AffineGrid")
      .attribute("align_corners", 1)
      .input<float>({1, 2, 3}, {1, 0, 0, 0, 1, 0})
      .input<int64_t>({4}, {1, 1, 2, 2})
      .expect<float>({1, 2, 2, 2}, {-1, -1, 1, -1, -1, 1, 1, 1})
      .run();
  OpTest("AffineGrid")
      .input<double>({1, 2, 3}, {0, 2, 1, 1, 0, 0})
      .constant<int64_t>({4}, {1, 1, 1, 2})
      .expect<double>({1, 1, 2, 2}, {1, -0.5, 1, 0.5})
      .run();
}

TEST(GridSample, TooManyAxes) {
  Tensor x(ElementType::float32, Shape{1, 1, 1, 1, 1, 1, 1, 1, 1}),
      grid(ElementType::float32, Shape{1, 1, 1, 1, 1, 1, 1, 1, 7});
  std::string error = OpTest("GridSample").input(x).input(grid).expect(x).error();
  EXPECT_TRUE(error.starts_with("unsupported in GridSample 'tested' (node 0): sampling over 7 spatial axes")) << error;
}

}  // namespace
}  // namespace tenon

#include <algorithm>

#include "op_test.h"

namespace tenon {
namespace {

OpTest pad(const char* mode, std::initializer_list<int64_t> pads) {
  OpTest test("Pad");
  test.attribute("mode", mode).input<float>({2, 3}, {1, 2, 3, 4, 5, 6}).input(Tensor(Shape{4}, pads));
  return test;
}

TEST(Pad, Modes) {
  pad("constant", {0, 1, 1, 0}).expect<float>({3, 4}, {0, 1, 2, 3, 0, 4, 5, 6, 0, 0, 0, 0}).run();
  pad("constant", {0, 1, 0, 1}).input<float>({}, {9}).expect<float>({2, 5}, {9, 1, 2, 3, 9, 9, 4, 5, 6, 9}).run();
  pad("constant", {0, -1, 0, -1}).expect<float>({2, 1}, {2, 5}).run();
  pad("constant", {1, -2, 0, 0}).expect<float>({3, 1}, {0, 3, 6}).run();
  pad("reflect", {0, 2, 0, 3}).expect<float>({2, 8}, {3, 2, 1, 2, 3, 2, 1, 2, 6, 5, 4, 5, 6, 5, 4, 5}).run();
  pad("reflect", {0, 9, 0, 0})
      .expect<float>({2, 12}, {2, 1, 2, 3, 2, 1, 2, 3, 2, 1, 2, 3, 5, 4, 5, 6, 5, 4, 5, 6, 5, 4, 5, 6})
      .run();
  pad("wrap", {0, 0, 0, 8})
      .expect<float>({2, 11}, {1, 2, 3, 1, 2, 3, 1, 2, 3, 1, 2, 4, 5, 6, 4, 5, 6, 4, 5, 6, 4, 5})
      .run();
  pad("edge", {1, 0, 0, 1}).expect<float>({3, 4}, {1, 2, 3, 3, 1, 2, 3, 3, 4, 5, 6, 6}).run();
  pad("wrap", {0, 1, 0, 4}).expect<float>({2, 8}, {3, 1, 2, 3, 1, 2, 3, 1, 6, 4, 5, 6, 4, 5, 6, 4}).run();
  pad("constant", {0, 0, 0, 0}).expect<float>({2, 3}, {1, 2, 3, 4, 5, 6}).run();
}

TEST(Pad, AxesTypesAndVersions) {
  OpTest("Pad")
      .input<float>({1, 2}, {1, 2})
      .input<int64_t>({2}, {1, 0})
      .no_input()
      .input<int32_t>({1}, {-1})
      .expect<float>({1, 3}, {0, 1, 2})
      .run();
  OpTest("Pad").input<std::string>({1}, {"a"}).input<int64_t>({2}, {1, 0}).expect<std::string>({2}, {"", "a"}).run();
  uint8_t in[] = {0x21}, out[] = {0x10, 0x02};
  OpTest("Pad")
      .input(Tensor::over(ElementType::uint4, Shape{2}, in))
      .input<int64_t>({2}, {1, 0})
      .expect(Tensor::over(ElementType::uint4, Shape{3}, out))
      .run();
  OpTest("Pad", 2)
      .attribute("pads", std::vector<int64_t>{1, 0})
      .input<float>({1}, {1})
      .expect<float>({2}, {0, 1})
      .run();
  OpTest("Pad", 1)
      .attribute("paddings", std::vector<int64_t>{0, 1})
      .input<float>({1}, {1})
      .expect<float>({2}, {1, 0})
      .run();
}

TEST(Pad, Errors) {
  EXPECT_NE(pad("constant", {0, -2, 0, -2}).error().find("the pads leave size -1 on axis 1"), std::string::npos);
  EXPECT_NE(OpTest("Pad")
                .attribute("mode", "edge")
                .input<float>({0}, {})
                .input<int64_t>({2}, {1, 0})
                .error()
                .find("axis 0 has no elements left to pad with"),
            std::string::npos);
}

TEST(CenterCropPad, CropsAndPads) {
  OpTest("CenterCropPad")
      .input<float>({4, 1}, {1, 2, 3, 4})
      .input<int64_t>({2}, {2, 2})
      .expect<float>({2, 2}, {2, 0, 3, 0})
      .run();
  OpTest("CenterCropPad")
      .attribute("axes", std::vector<int64_t>{-1})
      .input<float>({1, 4}, {1, 2, 3, 4})
      .input<int32_t>({1}, {1})
      .expect<float>({1, 1}, {2})
      .run();
}

TEST(Pad, ValueWasAnAttribute) {
  OpTest("Pad", 2)
      .attribute("pads", std::vector<int64_t>{1, 0})
      .attribute("value", 3.0f)
      .input<double>({1}, {1})
      .expect<double>({2}, {3, 1})
      .run();
}

TEST(Pad, AnEmptyOutputMayBeLong) {
  OpTest("Pad")
      .input<float>({2, 1}, {1, 2})
      .input<int64_t>({4}, {-2, 0, 0, int64_t{1} << 39})
      .expect(Tensor(ElementType::float32, Shape{0, (int64_t{1} << 39) + 1}))
      .run();
}

TEST(Pad, MorePadsThanAxes) {
  Tensor pads(ElementType::int64, Shape{100}), axes(ElementType::int64, Shape{50});
  std::ranges::fill(pads.mutable_data<int64_t>(), 1);
  std::ranges::fill(axes.mutable_data<int64_t>(), 1000);
  std::string error =
      OpTest("Pad").input<float>({1}, {1}).input(pads).no_input().input(axes).expect<float>({1}, {1}).error();
  EXPECT_TRUE(error.starts_with("shape-mismatch in Pad 'tested' (node 0)")) << error;
}

}  // namespace
}  // namespace tenon

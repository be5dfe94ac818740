#include "op_test.h"

namespace tenon {
namespace {

const std::initializer_list<float> sixteen = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16};

TEST(MaxPool, Windows) {
  auto test = [] {
    return std::move(OpTest("MaxPool").attribute("kernel_shape", {3, 3}).input<float>({1, 1, 4, 4}, sixteen));
  };
  test().expect<float>({1, 1, 2, 2}, {11, 12, 15, 16}).run();
  test().attribute("strides", {2, 2}).attribute("ceil_mode", 1).expect<float>({1, 1, 2, 2}, {11, 12, 15, 16}).run();
  test()
      .attribute("strides", {2, 2})
      .attribute("auto_pad", "SAME_UPPER")
      .expect<float>({1, 1, 2, 2}, {11, 12, 15, 16})
      .run();
  test()
      .attribute("strides", {2, 2})
      .attribute("auto_pad", "SAME_LOWER")
      .expect<float>({1, 1, 2, 2}, {6, 8, 14, 16})
      .run();
  test().attribute("strides", {3, 3}).attribute("pads", {1, 1, 1, 1}).expect<float>({1, 1, 2, 2}, {6, 8, 14, 16}).run();
  OpTest("MaxPool")
      .attribute("kernel_shape", {2})
      .attribute("dilations", {2})
      .input<float>({1, 1, 4}, {4, 9, 5, 1})
      .expect<float>({1, 1, 2}, {5, 9})
      .run();
  // The last window would start in the padding.
  OpTest("MaxPool")
      .attribute("kernel_shape", {1})
      .attribute("strides", {2})
      .attribute("ceil_mode", 1)
      .input<float>({1, 1, 2}, {4, 9})
      .expect<float>({1, 1, 1}, {4})
      .run();
}

TEST(MaxPool, Indices) {
  auto test = [] {
    return std::move(OpTest("MaxPool")
                         .attribute("kernel_shape", {2, 2})
                         .attribute("strides", {2, 2})
                         .input<float>({1, 1, 4, 4}, sixteen));
  };
  test().expect<float>({1, 1, 2, 2}, {6, 8, 14, 16}).expect<int64_t>({1, 1, 2, 2}, {5, 7, 13, 15}).run();
  test()
      .attribute("storage_order", 1)
      .expect<float>({1, 1, 2, 2}, {6, 8, 14, 16})
      .expect<int64_t>({1, 1, 2, 2}, {5, 13, 7, 15})
      .run();
}

TEST(MaxPool, Types) {
  OpTest("MaxPool")
      .attribute("kernel_shape", {2})
      .input<int8_t>({1, 1, 3}, {-5, -3, -4})
      .expect<int8_t>({1, 1, 2}, {-3, -3})
      .run();
  OpTest("MaxPool")
      .attribute("kernel_shape", {2})
      .input<uint8_t>({1, 1, 3}, {5, 3, 200})
      .expect<uint8_t>({1, 1, 2}, {5, 200})
      .run();
  OpTest("MaxPool")
      .attribute("kernel_shape", {2})
      .input<double>({1, 1, 3}, {5, 3, 200})
      .expect<double>({1, 1, 2}, {5, 200})
      .run();
  OpTest("MaxPool", 1)
      .attribute("kernel_shape", {2})
      .input<float16>({1, 1, 2}, {float16(5), float16(3)})
      .expect<float16>({1, 1, 1}, {float16(5)})
      .run();
}

TEST(AveragePool, Counting) {
  auto test = [](int opset = 22) {
    return std::move(OpTest("AveragePool", opset)
                         .attribute("kernel_shape", {3})
                         .attribute("pads", {1, 1})
                         .input<float>({1, 1, 3}, {3, 6, 9}));
  };
  test().expect<float>({1, 1, 3}, {4.5, 6, 7.5}).run();
  test(1).expect<float>({1, 1, 3}, {4.5, 6, 7.5}).run();
  test().attribute("count_include_pad", 1).expect<float>({1, 1, 3}, {3, 6, 5}).run();
  test()
      .attribute("count_include_pad", 1)
      .attribute("strides", {2})
      .attribute("ceil_mode", 1)
      .expect<float>({1, 1, 2}, {3, 5})
      .run();
  OpTest("AveragePool")
      .attribute("kernel_shape", {2})
      .attribute("dilations", {2})
      .input<double>({1, 1, 3}, {3, 6, 9})
      .expect<double>({1, 1, 1}, {6})
      .run();
}

TEST(AveragePool, Errors) {
  std::string text = OpTest("AveragePool").attribute("kernel_shape", {3, 3}).input<float>({1, 1, 3}, {3, 6, 9}).error();
  EXPECT_EQ(text,
            "invalid-attribute in AveragePool 'tested' (node 0): attribute 'kernel_shape' has 2 values; the input's "
            "spatial axes want 1");
}

TEST(LpPool, Powers) {
  OpTest("LpPool")
      .attribute("kernel_shape", {2})
      .input<float>({1, 1, 3}, {3, -4, 0})
      .expect<float>({1, 1, 2}, {5, 4})
      .run();
  OpTest("LpPool")
      .attribute("p", 1)
      .attribute("kernel_shape", {2})
      .input<double>({1, 1, 3}, {3, -4, 0})
      .expect<double>({1, 1, 2}, {7, 4})
      .run();
  OpTest("LpPool")
      .attribute("p", 3)
      .attribute("kernel_shape", {2})
      .input<float>({1, 1, 2}, {1, -2})
      .expect<float>({1, 1, 1}, {2.0800838f})
      .run();
  OpTest("LpPool", 1)
      .attribute("p", 2.0f)
      .attribute("kernel_shape", {2})
      .input<float>({1, 1, 2}, {3, 4})
      .expect<float>({1, 1, 1}, {5})
      .run();
}

}  // namespace
}  // namespace tenon

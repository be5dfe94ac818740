#include "op_test.h"

namespace tenon {
namespace {

TEST(QuantizeLinear, Granularity) {
  OpTest("QuantizeLinear", 10)
      .input<float>({4}, {-1, 3, 5, 1000})
      .input<float>({}, {2})
      .input<uint8_t>({}, {128})
      .expect<uint8_t>({4}, {128, 130, 130, 255})
      .run();
  OpTest("QuantizeLinear")
      .input<float>({1, 2, 2}, {2, 4, 9, -6})
      .input<float>({2}, {2, 3})
      .input<int8_t>({2}, {1, -1})
      .expect<int8_t>({1, 2, 2}, {2, 3, 2, -3})
      .run();
  OpTest("QuantizeLinear")
      .attribute("axis", -1)
      .attribute("block_size", 2)
      .input<float>({1, 3}, {2, 4, 9})
      .input<float>({1, 2}, {2, 3})
      .expect<uint8_t>({1, 3}, {1, 2, 3})
      .run();
  OpTest("QuantizeLinear")
      .attribute("axis", 0)
      .attribute("block_size", 2)
      .input<float16>({2, 2}, {float16(2), float16(4), float16(6), float16(8)})
      .input<float16>({1, 2}, {float16(2), float16(4)})
      .expect<uint8_t>({2, 2}, {1, 1, 3, 2})
      .run();
}

TEST(QuantizeLinear, RoundsAndSaturates) {
  OpTest("QuantizeLinear")
      .input<float>({9}, {0.5f, 1.5f, -2.5f, 1e30f, -INFINITY, NAN, 126.9f, -0.0f, 3})
      .input<float>({}, {1})
      .input<int8_t>({}, {2})
      .expect<int8_t>({9}, {2, 4, 0, 127, -128, -128, 127, 2, 5})
      .run();
  OpTest("QuantizeLinear")
      .input<float>({5}, {-1, 0.25f, 63.75f, 64, 0.74f})
      .input<float>({}, {0.5f})
      .input<uint8_t>({}, {128})
      .expect<uint8_t>({5}, {126, 128, 255, 255, 129})
      .run();
}

TEST(QuantizeLinear, Types) {
  OpTest("QuantizeLinear")
      .attribute("output_dtype", static_cast<int>(ElementType::int16))
      .input<int32_t>({2}, {100000, -3})
      .input<float>({}, {1})
      .expect<int16_t>({2}, {32767, -3})
      .run();
  OpTest("QuantizeLinear")
      .input<float>({3}, {2, 1e6f, -1})
      .input<float>({}, {2})
      .input<float8e4m3fn>({}, {float8e4m3fn(0.f)})
      .expect<float8e4m3fn>({3}, {float8e4m3fn(1.f), float8e4m3fn(448.f), float8e4m3fn(-0.5f)})
      .run();
}

// A scale of another type than the numbers'.
TEST(QuantizeLinear, HalvesByFloatScale) {
  OpTest("QuantizeLinear")
      .input<float16>({4}, {float16(1), float16(-1), float16(10.046875f), float16(100)})
      .input<float>({}, {0.1f})
      .input<uint8_t>({}, {3})
      .expect<uint8_t>({4}, {13, 0, 103, 255})
      .run();
  OpTest("DequantizeLinear")
      .attribute("output_dtype", static_cast<int>(ElementType::float16))
      .input<uint8_t>({3}, {0, 3, 103})
      .input<float>({}, {0.1f})
      .input<uint8_t>({}, {3})
      .expect<float16>({3}, {float16(-0.3f), float16(0), float16(10)})
      .run();
}

TEST(QuantizeLinear, Errors) {
  auto first_line = [](std::string text) { return text.substr(0, text.find('\n')); };
  EXPECT_EQ(first_line(OpTest("QuantizeLinear").input<float>({1, 2}, {2, 4}).input<float>({3}, {1, 2, 3}).error()),
            "shape-mismatch in QuantizeLinear 'tested' (node 0): axis 1 of x and the size of scale must be equal: 2 "
            "against 3");
}

TEST(DequantizeLinear, Granularity) {
  OpTest("DequantizeLinear", 10)
      .input<uint8_t>({3}, {0, 128, 255})
      .input<float>({}, {2})
      .input<uint8_t>({}, {128})
      .expect<float>({3}, {-256, 0, 254})
      .run();
  OpTest("DequantizeLinear")
      .input<int8_t>({1, 2}, {1, 2})
      .input<float16>({2}, {float16(2), float16(3)})
      .expect<float16>({1, 2}, {float16(2), float16(6)})
      .run();
  OpTest("DequantizeLinear").input<int32_t>({1}, {7}).input<float>({}, {0.5f}).expect<float>({1}, {3.5f}).run();
}

TEST(DynamicQuantizeLinear, Range) {
  OpTest("DynamicQuantizeLinear")
      .input<float>({6}, {0, 2, -3, -2.5f, 1.34f, 0.5f})
      .expect<uint8_t>({6}, {153, 255, 0, 26, 221, 179})
      .expect<float>({}, {0.0196078438f})
      .expect<uint8_t>({}, {153})
      .run();
  OpTest("DynamicQuantizeLinear")
      .input<float>({0}, {})
      .expect<uint8_t>({0}, {})
      .expect<float>({}, {1 / 255.f})
      .expect<uint8_t>({}, {0})
      .run();
}

}  // namespace
}  // namespace tenon

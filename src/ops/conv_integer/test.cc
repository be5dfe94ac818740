#include "op_test.h"

namespace tenon {
namespace {

TEST(ConvInteger, ZeroPointsAndPadding) {
  OpTest("ConvInteger")
      .attribute("pads", {1, 0})
      .input<uint8_t>({1, 1, 2}, {3, 4})
      .constant<uint8_t>({1, 1, 2}, {1, 2})
      .input<uint8_t>({}, {1})
      .expect<int32_t>({1, 1, 2}, {4, 8})
      .run();
  OpTest("ConvInteger")
      .input<int8_t>({1, 1, 2}, {3, 4})
      .input<int8_t>({2, 1, 2}, {1, 2, 3, 4})
      .no_input()
      .input<int8_t>({2}, {1, 2})
      .expect<int32_t>({1, 2, 1}, {4, 11})
      .run();
}

TEST(ConvInteger, Groups) {
  // One output for each group, and two.
  OpTest("ConvInteger")
      .attribute("group", 2)
      .input<uint8_t>({1, 2, 1, 2}, {1, 2, 3, 4})
      .constant<int8_t>({2, 1, 1, 1}, {2, -1})
      .expect<int32_t>({1, 2, 1, 2}, {2, 4, -3, -4})
      .run();
  OpTest("ConvInteger")
      .attribute("group", 2)
      .input<uint8_t>({1, 2, 1, 2}, {1, 2, 3, 4})
      .constant<int8_t>({4, 1, 1, 1}, {2, -1, 1, 0})
      .input<uint8_t>({}, {1})
      .constant<int8_t>({4}, {0, 1, 0, 2})
      .expect<int32_t>({1, 4, 1, 2}, {0, 2, 0, -2, 2, 3, -4, -6})
      .run();
}

TEST(QLinearConv, PerChannel) {
  OpTest("QLinearConv")
      .input<uint8_t>({1, 1, 2}, {10, 20})
      .input<float>({}, {0.5f})
      .input<uint8_t>({}, {10})
      .constant<int8_t>({2, 1, 1}, {2, -3})
      .input<float>({2}, {1, 2})
      .constant<int8_t>({2}, {0, 0})
      .input<float>({}, {2})
      .input<uint8_t>({}, {100})
      .input<int32_t>({2}, {4, 0})
      .expect<uint8_t>({1, 2, 2}, {101, 106, 100, 85})
      .run();
}

}  // namespace
}  // namespace tenon

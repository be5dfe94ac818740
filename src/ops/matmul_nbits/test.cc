#include "op_test.h"

namespace tenon {
namespace {

// Two columns of 16 codes: 0, 1, … 15 and 15, 14, … 0.
OpTest four_bits() {
  OpTest t("MatMulNBits", 1, "com.microsoft");
  t.attribute("K", 16).attribute("N", 2).attribute("block_size", 16).attribute("bits", 4);
  return t;
}
const std::vector<uint8_t> rising = {0x10, 0x32, 0x54, 0x76, 0x98, 0xba, 0xdc, 0xfe,
                                     0xef, 0xcd, 0xab, 0x89, 0x67, 0x45, 0x23, 0x01};
// The first and the last step, and all of them.
const std::vector<float> rows = {1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2,
                                 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1};

Tensor codes() { return Tensor(Shape{2, 1, 8}, std::span<const uint8_t>(rising)); }
Tensor numbers() { return Tensor(Shape{2, 16}, std::span<const float>(rows)); }

TEST(MatMulNBits, FourBits) {
  // Without zero points, codes stand for code - 8.
  four_bits()
      .input(numbers())
      .constant(codes())
      .constant<float>({2}, {1, 0.5f})
      .expect<float>({2, 2}, {6, -4.5f, -8, -4})
      .run();
  four_bits()
      .input(numbers())
      .input(codes())
      .input<float>({2}, {1, 0.5f})
      .expect<float>({2, 2}, {6, -4.5f, -8, -4})
      .run();
}

TEST(MatMulNBits, ZeroPointsAndBias) {
  four_bits()
      .input(numbers())
      .constant(codes())
      .constant<float>({2, 1}, {1, 1})
      .constant<uint8_t>({2, 1}, {0, 15})
      .no_input()
      .constant<float>({2}, {100, 200})
      .expect<float>({2, 2}, {130, 170, 220, 80})
      .run();
  four_bits()
      .input(numbers())
      .constant(codes())
      .constant<float>({2, 1}, {1, 1})
      .constant<float>({2, 1}, {0.5f, 0})
      .expect<float>({2, 2}, {28.5f, 15, 112, 120})
      .run();
}

TEST(MatMulNBits, GroupsOfTheirOwn) {
  OpTest t("MatMulNBits", 1, "com.microsoft");
  t.attribute("K", 17).attribute("N", 1).attribute("block_size", 16).attribute("bits", 8);
  std::vector<uint8_t> bytes(32, 129);
  std::vector<float> ones(17, 1);
  std::vector<int32_t> groups(17, 1);
  groups[3] = 0;
  t.input(Tensor(Shape{1, 17}, std::span<const float>(ones)))
      .constant(Tensor(Shape{1, 2, 16}, std::span<const uint8_t>(bytes)))
      .constant<float>({1, 2}, {100, 1})
      .no_input()
      .constant(Tensor(Shape{17}, std::span<const int32_t>(groups)))
      .expect<float>({1, 1}, {116})
      .run();
}

TEST(MatMulNBits, HalfPrecisionAndTwoBits) {
  OpTest t("MatMulNBits", 1, "com.microsoft");
  t.attribute("K", 16)
      .attribute("N", 1)
      .attribute("block_size", 16)
      .attribute("bits", 2)
      .attribute("accuracy_level", 4);
  const std::vector<float16> ones(16, float16(1.0f));
  t.input(Tensor(Shape{1, 16}, std::span<const float16>(ones)))
      .constant<uint8_t>({1, 1, 4}, {0xe4, 0xe4, 0xe4, 0xff})
      .constant<float16>({1, 1}, {float16(2.0f)})
      .expect<float16>({1, 1}, {float16(-4.0f)})
      .run();
}

TEST(MatMulNBits, WrongSizes) {
  OpTest t = four_bits();
  t.input(numbers()).constant(codes()).constant<float>({3}, {1, 1, 1}).expect<float>({2, 2}, {0, 0, 0, 0});
  EXPECT_NE(t.error().find("scales must have 2 elements; it has 3"), std::string::npos);
}

TEST(GatherBlockQuantized, RowsOfATable) {
  OpTest t("GatherBlockQuantized", 1, "com.microsoft");
  t.attribute("block_size", 16).attribute("bits", 4);
  t.constant(Tensor(Shape{2, 8}, std::span<const uint8_t>(rising)))
      .input<int64_t>({1, 1}, {1})
      .constant<float>({2, 1}, {1, 0.5f})
      .expect<float>({1, 1, 16}, {3.5f, 3, 2.5f, 2, 1.5f, 1, 0.5f, 0, -0.5f, -1, -1.5f, -2, -2.5f, -3, -3.5f, -4})
      .run();
}

}  // namespace
}  // namespace tenon

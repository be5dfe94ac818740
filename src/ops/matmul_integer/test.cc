#include "op_test.h"

namespace tenon {
namespace {

TEST(MatMulInteger, ZeroPoints) {
  OpTest("MatMulInteger")
      .input<uint8_t>({2, 2}, {1, 2, 3, 4})
      .input<int8_t>({2, 2}, {1, -1, 2, 3})
      .expect<int32_t>({2, 2}, {5, 5, 11, 9})
      .run();
  OpTest("MatMulInteger")
      .input<uint8_t>({2, 2}, {1, 2, 3, 4})
      .input<uint8_t>({2, 1}, {5, 6})
      .input<uint8_t>({1}, {1})
      .input<uint8_t>({}, {4})
      .expect<int32_t>({2, 1}, {2, 8})
      .run();
  OpTest("MatMulInteger")
      .input<int8_t>({2, 1}, {1, 2})
      .input<int8_t>({1, 2}, {3, 4})
      .input<int8_t>({2}, {1, 0})
      .input<int8_t>({2}, {0, 1})
      .expect<int32_t>({2, 2}, {0, 0, 6, 6})
      .run();
  OpTest("MatMulInteger")
      .input<int8_t>({2, 1, 1}, {1, 2})
      .input<int8_t>({1, 1, 1}, {3})
      .expect<int32_t>({2, 1, 1}, {3, 6})
      .run();
}

// Constant right sides are packed when the kernel is made.
TEST(MatMulInteger, ConstantMatrices) {
  OpTest("MatMulInteger")
      .input<uint8_t>({2, 1, 2}, {1, 2, 3, 4})
      .constant<int8_t>({2, 2}, {1, -1, 2, 3})
      .input<uint8_t>({}, {1})
      .constant<int8_t>({2}, {1, 2})
      .expect<int32_t>({2, 1, 2}, {1, 1, 3, -3})
      .run();
  OpTest("MatMulInteger")
      .input<int8_t>({2, 1, 1}, {2, 3})
      .constant<int8_t>({2, 1, 1}, {5, 7})
      .input<int8_t>({}, {0})
      .constant<int8_t>({2, 1, 1}, {1, 2})
      .expect<int32_t>({2, 1, 1}, {8, 15})
      .run();
  OpTest("MatMulInteger").input<int8_t>({1, 0}, {}).input<int8_t>({0, 2}, {}).expect<int32_t>({1, 2}, {0, 0}).run();
}

TEST(QLinearMatMul, Requantizes) {
  OpTest("QLinearMatMul")
      .input<uint8_t>({1, 2}, {10, 20})
      .input<float>({}, {0.5f})
      .input<uint8_t>({}, {0})
      .input<uint8_t>({2, 1}, {1, 2})
      .input<float>({1}, {1})
      .input<uint8_t>({1}, {0})
      .input<float>({}, {2})
      .input<uint8_t>({}, {3})
      .expect<uint8_t>({1, 1}, {15})
      .run();
  OpTest("QLinearMatMul")
      .input<int8_t>({1, 1}, {100})
      .input<float>({}, {1})
      .input<int8_t>({}, {0})
      .input<int8_t>({1, 2}, {2, -1})
      .input<float>({2}, {1, 2})
      .input<int8_t>({2}, {0, 0})
      .input<float>({}, {1})
      .input<int8_t>({}, {0})
      .expect<int8_t>({1, 2}, {127, -128})
      .run();
}

TEST(MatMulInteger, Errors) {
  std::string text = OpTest("MatMulInteger")
                         .input<int8_t>({2, 1}, {1, 2})
                         .input<int8_t>({1, 2}, {3, 4})
                         .input<int8_t>({3}, {1, 0, 0})
                         .expect<int32_t>({2, 2}, {0, 0, 0, 0})
                         .error();
  EXPECT_EQ(text,
            "shape-mismatch in MatMulInteger 'tested' (node 0): a_zero_point has 3 elements; it may have 1, 2 or 2");
}

}  // namespace
}  // namespace tenon

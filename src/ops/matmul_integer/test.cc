#include <algorithm>

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

// More products than sums of 32 bits hold: 255 * 255 * 40000 * 1e-7 is 260.1.
TEST(QLinearMatMul, LongSums) {
  const int64_t k = 40000;
  Tensor a(ElementType::uint8, Shape{1, k}), b(ElementType::uint8, Shape{k, 1});
  std::ranges::fill(a.mutable_data<uint8_t>(), uint8_t{255});
  std::ranges::fill(b.mutable_data<uint8_t>(), uint8_t{255});
  OpTest("QLinearMatMul")
      .input(a)
      .input<float>({}, {1e-7f})
      .input<uint8_t>({}, {0})
      .input(b)
      .input<float>({}, {1})
      .input<uint8_t>({}, {0})
      .input<float>({}, {2})
      .input<uint8_t>({}, {5})
      .expect<uint8_t>({1, 1}, {135})
      .run();
}

// Of domain tenon: a bias of the sums, and codes that are added to those of the product.
OpTest with_bias() {
  OpTest t("QLinearMatMul", 1, "tenon");
  t.input<uint8_t>({2, 2, 2}, {10, 20, 0, 6, 11, 21, 255, 255}).constant<float>({}, {0.5f}).constant<uint8_t>({}, {6});
  t.constant<int8_t>({2, 2}, {1, -2, 3, 4}).constant<float>({2}, {1, 0.5f}).constant<int8_t>({2}, {0, 0});
  t.constant<float>({}, {2}).constant<int8_t>({}, {3});
  return t;
}

TEST(QLinearMatMul, BiasAndCodesAdded) {
  with_bias().expect<int8_t>({2, 2, 2}, {15, 9, 1, 5, 15, 9, 127, 65}).run();
  with_bias().constant<int32_t>({2}, {-6, 8}).expect<int8_t>({2, 2, 2}, {13, 10, 0, 5, 14, 10, 127, 66}).run();
  OpTest added = with_bias();
  added.constant<int32_t>({2}, {-6, 8}).constant<int8_t>({2}, {4, -1}).constant<float>({}, {4});
  added.constant<int8_t>({}, {0}).constant<float>({}, {3}).constant<int8_t>({}, {-10});
  added.expect<int8_t>({2, 2, 2}, {2, -7, -7, -10, 3, -7, 78, 31}).run();
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

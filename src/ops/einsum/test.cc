#include "op_test.h"

namespace tenon {
namespace {

OpTest einsum(const char* equation) {
  OpTest test("Einsum");
  test.attribute("equation", equation);
  return test;
}

TEST(Einsum, OneOperand) {
  einsum("ij->ji").input<float>({2, 2}, {1, 2, 3, 4}).expect<float>({2, 2}, {1, 3, 2, 4}).run();
  einsum("ii").input<float>({2, 2}, {1, 2, 3, 4}).expect<float>({}, {5}).run();
  einsum("...ii->...i").input<int32_t>({1, 2, 2}, {1, 2, 3, 4}).expect<int32_t>({1, 2}, {1, 4}).run();
  einsum("ij -> i").input<double>({2, 2}, {1, 2, 3, 4}).expect<double>({2}, {3, 7}).run();
  einsum("ba").input<float>({2, 1}, {1, 2}).expect<float>({1, 2}, {1, 2}).run();
}

TEST(Einsum, Products) {
  einsum("ij,jk")
      .input<float>({2, 2}, {1, 2, 3, 4})
      .input<float>({2, 1}, {1, 10})
      .expect<float>({2, 1}, {21, 43})
      .run();
  einsum("bij,bjk->bik")
      .input<float>({1, 1, 2}, {1, 2})
      .input<float>({1, 2, 1}, {1, 10})
      .expect<float>({1, 1, 1}, {21})
      .run();
  einsum("i,j->ij")
      .input<uint8_t>({2}, {2, 3})
      .input<uint8_t>({2}, {5, 100})
      .expect<uint8_t>({2, 2}, {10, 200, 15, 44})
      .run();
  einsum("...i,...i->...")
      .input<float>({2, 2}, {1, 2, 3, 4})
      .input<float>({1, 2}, {1, 10})
      .expect<float>({2}, {21, 43})
      .run();
  einsum("a,b,ab->")
      .input<float16>({1}, {float16(2)})
      .input<float16>({2}, {float16(1), float16(2)})
      .input<float16>({1, 2}, {float16(3), float16(4)})
      .expect<float16>({}, {float16(22)})
      .run();
}

TEST(Einsum, Errors) {
  auto first_line = [](std::string text) { return text.substr(0, text.find('\n')); };
  EXPECT_EQ(
      first_line(einsum("ij->ik").input<float>({1, 1}, {1}).error()),
      "invalid-attribute in Einsum 'tested' (node 0): the output of the equation 'ij->ik' has 'k', which no input has");
  EXPECT_EQ(first_line(einsum("i,i").input<float>({2}, {1, 2}).input<float>({3}, {1, 2, 3}).error()),
            "shape-mismatch in Einsum 'tested' (node 0): the sizes of 'i' must be equal: 2 against 3");
  EXPECT_EQ(
      first_line(einsum("i").input<float>({1, 1}, {1}).error()),
      "invalid-attribute in Einsum 'tested' (node 0): term 0 of the equation 'i' has 1 labels; the input has rank 2");
}

}  // namespace
}  // namespace tenon

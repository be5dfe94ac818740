#include "op_test.h"

namespace tenon {
namespace {

TEST(Transpose, Permutations) {
  OpTest("Transpose").input<float>({2, 3}, {1, 2, 3, 4, 5, 6}).expect<float>({3, 2}, {1, 4, 2, 5, 3, 6}).run();
  OpTest("Transpose").attribute("perm", std::vector<int64_t>{1, 0, 2}).input<int8_t>({2, 2, 2}, {1, 2, 3, 4, 5, 6, 7, 8}).expect<int8_t>({2, 2, 2}, {1, 2, 5, 6, 3, 4, 7, 8}).run();
  OpTest("Transpose").attribute("perm", std::vector<int64_t>{1, 2, 0}).input<double>({1, 2, 2}, {1, 2, 3, 4}).expect<double>({2, 2, 1}, {1, 2, 3, 4}).run();
  OpTest("Transpose", 1).input<float>({}, {1}).expect<float>({}, {1}).run();
  OpTest("Transpose").input<float>({0, 3}, {}).expect<float>({3, 0}, {}).run();
}

TEST(Transpose, Types) {
  OpTest("Transpose").input<std::string>({2, 2}, {"a", "b", "c", "d"}).expect<std::string>({2, 2}, {"a", "c", "b", "d"}).run();
  OpTest("Transpose").input<std::complex<double>>({2, 2}, {1, 2, 3, 4}).expect<std::complex<double>>({2, 2}, {1, 3, 2, 4}).run();
  uint8_t in[] = {0x21, 0x43, 0x65}, out[] = {0x41, 0x52, 0x63};
  OpTest("Transpose").input(Tensor::over(ElementType::uint4, Shape{2, 3}, in)).expect(Tensor::over(ElementType::uint4, Shape{3, 2}, out)).run();
}

TEST(Transpose, Errors) {
  EXPECT_EQ(OpTest("Transpose").attribute("perm", std::vector<int64_t>{0, 0}).input<float>({1, 1}, {1}).error(),
            "invalid-attribute in Transpose 'tested' (node 0): axis 0 is given twice\n"
            "  input 0 'in0' is tensor(float) [1, 1], an input of the graph");
}

}  // namespace
}  // namespace tenon

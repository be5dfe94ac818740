#include "op_test.h"

namespace tenon {
namespace {

TEST(CumSum, Orders) {
  const Tensor x({2, 3}, {1.0f, 2.0f, 3.0f, 4.0f, 5.0f, 6.0f});
  OpTest("CumSum").input(x).input<int64_t>({}, {1}).expect<float>({2, 3}, {1, 3, 6, 4, 9, 15}).run();
  OpTest("CumSum").input(x).input<int32_t>({1}, {0}).expect<float>({2, 3}, {1, 2, 3, 5, 7, 9}).run();
  OpTest("CumSum").input(x).input<int64_t>({}, {-1}).attribute("exclusive", 1).expect<float>({2, 3}, {0, 1, 3, 0, 4, 9}).run();
  OpTest("CumSum").input(x).input<int64_t>({}, {1}).attribute("reverse", 1).expect<float>({2, 3}, {6, 5, 3, 15, 11, 6}).run();
  OpTest("CumSum").input(x).input<int64_t>({}, {1}).attribute("reverse", 1).attribute("exclusive", 1).expect<float>({2, 3}, {5, 3, 0, 11, 6, 0}).run();
}

TEST(CumSum, Types) {
  OpTest("CumSum").input<int32_t>({2}, {2147483647, 1}).input<int64_t>({}, {0}).expect<int32_t>({2}, {2147483647, -2147483648}).run();
  OpTest("CumSum").input<bfloat16>({2}, {bfloat16(1), bfloat16(2)}).input<int64_t>({}, {0}).expect<bfloat16>({2}, {bfloat16(1), bfloat16(3)}).run();
  OpTest("CumSum").input<double>({0}, {}).input<int64_t>({}, {0}).expect<double>({0}, {}).run();
}

TEST(CumProd, Orders) {
  OpTest("CumProd").input<int64_t>({3}, {2, 3, 4}).input<int64_t>({}, {0}).expect<int64_t>({3}, {2, 6, 24}).run();
  OpTest("CumProd").input<float>({3}, {2, 3, 4}).input<int64_t>({}, {0}).attribute("exclusive", 1).attribute("reverse", 1).expect<float>({3}, {12, 4, 1}).run();
}

TEST(CumSum, Errors) {
  EXPECT_EQ(OpTest("CumSum").input<float>({2}, {1, 2}).input<int64_t>({}, {1}).error(),
            "invalid-attribute in CumSum 'tested' (node 0): axis 1 is out of range for rank 1\n"
            "  input 0 'in0' is tensor(float) [2], an input of the graph\n"
            "  input 1 'in1' is tensor(int64) [], an input of the graph");
}

}  // namespace
}  // namespace tenon

#include "op_test.h"

namespace tenon {
namespace {

TEST(MatMul, Shapes) {
  OpTest("MatMul")
      .input<float>({2, 3}, {1, 2, 3, 4, 5, 6})
      .input<float>({3, 2}, {1, 0, 0, 1, 1, 1})
      .expect<float>({2, 2}, {4, 5, 10, 11})
      .run();
  OpTest("MatMul").input<float>({3}, {1, 2, 3}).input<float>({3}, {1, 1, 1}).expect<float>({}, {6}).run();
  OpTest("MatMul").input<float>({3}, {1, 2, 3}).constant<float>({3, 1}, {1, 1, 1}).expect<float>({1}, {6}).run();
  OpTest("MatMul")
      .input<float>({2, 1, 2}, {1, 2, 3, 4})
      .input<float>({1, 2, 1}, {1, 1})
      .expect<float>({2, 1, 1}, {3, 7})
      .run();
  OpTest("MatMul")
      .input<float>({2, 1, 1, 2}, {1, 2, 3, 4})
      .input<float>({2, 2, 1}, {1, 1, 2, 2})
      .expect<float>({2, 2, 1, 1}, {3, 6, 7, 14})
      .run();
  OpTest("MatMul").input<float>({2, 0}, {}).input<float>({0, 2}, {}).expect<float>({2, 2}, {0, 0, 0, 0}).run();
  OpTest("MatMul").input<float>({0, 2}, {}).input<float>({2, 2}, {1, 2, 3, 4}).expect<float>({0, 2}, {}).run();
}

TEST(MatMul, Types) {
  OpTest("MatMul").input<int64_t>({1, 2}, {2, 3}).input<int64_t>({2, 1}, {4, 5}).expect<int64_t>({1, 1}, {23}).run();
  OpTest("MatMul").input<double>({1, 2}, {2, 3}).input<double>({2, 1}, {4, 5}).expect<double>({1, 1}, {23}).run();
  OpTest("MatMul")
      .input<float16>({1, 2}, {float16(2), float16(3)})
      .input<float16>({2, 1}, {float16(4), float16(5)})
      .expect<float16>({1, 1}, {float16(23)})
      .run();
  OpTest("MatMul")
      .input<float16>({2, 1, 2}, {float16(2), float16(3), float16(1), float16(-1)})
      .constant<float16>({2, 1}, {float16(4), float16(5)})
      .expect<float16>({2, 1, 1}, {float16(23), float16(-1)})
      .run();
  OpTest("Gemm")
      .attribute("transB", 1)
      .input<bfloat16>({1, 2}, {bfloat16(2), bfloat16(3)})
      .constant<bfloat16>({3, 2}, {bfloat16(4), bfloat16(5), bfloat16(1), bfloat16(0), bfloat16(0), bfloat16(2)})
      .input<bfloat16>({3}, {bfloat16(1), bfloat16(2), bfloat16(3)})
      .expect<bfloat16>({1, 3}, {bfloat16(24), bfloat16(4), bfloat16(9)})
      .run();
}

TEST(MatMul, Errors) {
  EXPECT_EQ(OpTest("MatMul").input<float>({2, 3}, {1, 2, 3, 4, 5, 6}).input<float>({2, 3}, {1, 2, 3, 4, 5, 6}).error(),
            "shape-mismatch in MatMul 'tested' (node 0): the last axis of A and the second last of B must be equal: 3 "
            "against 2\n"
            "  input 0 'in0' is tensor(float) [2, 3], an input of the graph\n"
            "  input 1 'in1' is tensor(float) [2, 3], an input of the graph");
  EXPECT_EQ(OpTest("MatMul").input<float>({1, 1}, {1}).input<double>({1, 1}, {1}).error(),
            "type-mismatch in MatMul 'tested' (node 0), tensor 'in1': inputs 0 and 1 must have one type\n"
            "  input 0 'in0' is tensor(float) [1, 1], an input of the graph\n"
            "  input 1 'in1' is tensor(double) [1, 1], an input of the graph\n"
            "  hint: insert a Cast before one of them");
}

TEST(Gemm, Attributes) {
  OpTest("Gemm")
      .input<float>({1, 2}, {1, 2})
      .constant<float>({2, 2}, {1, 2, 3, 4})
      .input<float>({2}, {10, 20})
      .expect<float>({1, 2}, {17, 30})
      .run();
  OpTest("Gemm")
      .attribute("transB", 1)
      .attribute("alpha", 2.0f)
      .attribute("beta", 0.5f)
      .input<float>({1, 2}, {1, 2})
      .constant<float>({2, 2}, {1, 2, 3, 4})
      .input<float>({1, 1}, {10})
      .expect<float>({1, 2}, {15, 27})
      .run();
  OpTest("Gemm")
      .attribute("transA", 1)
      .input<int32_t>({2, 1}, {1, 2})
      .input<int32_t>({2, 2}, {1, 2, 3, 4})
      .expect<int32_t>({1, 2}, {7, 10})
      .run();
  OpTest("Gemm", 6)
      .attribute("broadcast", 1)
      .input<float>({1, 1}, {2})
      .input<float>({1, 1}, {3})
      .input<float>({1}, {1})
      .expect<float>({1, 1}, {7})
      .run();
}

TEST(FusedMatMul, BiasResidualAndActivation) {
  for (bool constant : {false, true}) {
    for (bool transposed : {false, true}) {
      OpTest test("FusedMatMul", 1, "tenon");
      test.attribute("transB", transposed ? 1 : 0).input<float>({2, 1, 2}, {1, 2, 3, 4});
      const std::initializer_list<float> b = {1, 0, 2, 0, 1, -1}, bt = {1, 0, 0, 1, 2, -1};
      const Shape shape = transposed ? Shape{3, 2} : Shape{2, 3};
      if (constant)
        test.constant<float>(shape, transposed ? bt : b);
      else
        test.input<float>(shape, transposed ? bt : b);
      test.input<float>({3}, {10, 20, 30}).input<float>({2, 1, 3}, {-20, 0, 0, 0, 0, -100});
      test.attribute("activation", "Relu").expect<float>({2, 1, 3}, {0, 22, 30, 13, 24, 0}).run();
    }
  }
  OpTest("FusedMatMul", 1, "tenon")
      .attribute("activation", "Tanh")
      .input<float>({1, 0}, {})
      .input<float>({0, 2}, {})
      .expect<float>({1, 2}, {0, 0})
      .run();
}

TEST(FusedMatMul, BatchesOfTransposedMatrices) {
  for (bool left : {false, true}) {
    for (bool right : {false, true}) {
      OpTest test("FusedMatMul", 1, "tenon");
      test.attribute("transA", left ? 1 : 0).attribute("transB", right ? 1 : 0).attribute("alpha", 0.5f);
      const std::initializer_list<float> a = {1, 2, 3, 4, 5, 6, 2, 0, 0, 0, 0, 4},
                                         at = {1, 4, 2, 5, 3, 6, 2, 0, 0, 0, 0, 4}, b = {2, 0, 0, 2, 4, 6},
                                         bt = {2, 0, 4, 0, 2, 6};
      test.input<float>(left ? Shape{2, 1, 3, 2} : Shape{2, 1, 2, 3}, left ? at : a);
      test.input<float>(right ? Shape{1, 2, 3} : Shape{1, 3, 2}, right ? bt : b);
      test.input<float>({2}, {1, 0}).expect<float>({2, 1, 2, 2}, {8, 11, 17, 23, 3, 0, 9, 12}).run();
    }
  }
  // The left side of a batch meets one packed matrix, and the residual is added.
  for (bool constant : {false, true}) {
    OpTest test("FusedMatMul", 1, "tenon");
    test.attribute("transA", 1).input<float>({2, 2, 1}, {1, 2, 3, 4});
    if (constant)
      test.constant<float>({2, 2}, {1, 0, 0, 1});
    else
      test.input<float>({2, 2}, {1, 0, 0, 1});
    test.no_input().input<float>({2, 1, 2}, {10, 10, 20, 20}).expect<float>({2, 1, 2}, {11, 12, 23, 24}).run();
  }
}

TEST(FusedMatMul, Errors) {
  std::string text = OpTest("FusedMatMul", 1, "tenon")
                         .input<float>({1, 2}, {1, 2})
                         .input<float>({2, 1}, {1, 2})
                         .input<float>({2}, {1, 2})
                         .error();
  EXPECT_EQ(text.substr(0, text.find('\n')),
            "shape-mismatch in tenon.FusedMatMul 'tested' (node 0): the columns of B and the size of bias must be "
            "equal: 1 against 2");
}

}  // namespace
}  // namespace tenon

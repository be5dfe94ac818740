#include "op_test.h"

namespace tenon {
namespace {

TEST(Softmax, Axes) {
  OpTest("Softmax")
      .input<float>({2, 2}, {1, 2, 3, 4})
      .expect<float>({2, 2}, {0.2689414f, 0.7310586f, 0.2689414f, 0.7310586f})
      .run();
  OpTest("Softmax")
      .attribute("axis", 0)
      .input<float>({2, 2}, {1, 1, 3, 2})
      .expect<float>({2, 2}, {0.1192029f, 0.2689414f, 0.8807970f, 0.7310586f})
      .run();
  OpTest("LogSoftmax").input<float>({2}, {1, 2}).expect<float>({2}, {-1.3132617f, -0.3132617f}).run();
  OpTest("Hardmax").attribute("axis", 0).input<float>({2, 2}, {1, 5, 1, 6}).expect<float>({2, 2}, {1, 0, 0, 1}).run();
  OpTest("Softmax").input<float>({}, {5}).expect<float>({}, {1}).run();
  OpTest("LogSoftmax").input<float>({}, {5}).expect<float>({}, {0}).run();
  OpTest("Softmax").input<float>({0, 3}, {}).expect<float>({0, 3}, {}).run();
  OpTest("Softmax").input<float>({3, 0}, {}).expect<float>({3, 0}, {}).run();
}

TEST(Softmax, Types) {
  OpTest("Softmax")
      .input<double>({2, 1}, {1, 2})
      .attribute("axis", 0)
      .expect<double>({2, 1}, {0.2689414, 0.7310586})
      .run();
  OpTest("LogSoftmax").input<double>({2}, {1, 2}).expect<double>({2}, {-1.3132617, -0.3132617}).run();
  OpTest("Softmax")
      .input<float16>({2}, {float16(1), float16(2)})
      .expect<float16>({2}, {float16(0.2689414f), float16(0.7310586f)})
      .run();
  OpTest("Softmax")
      .input<bfloat16>({2}, {bfloat16(1), bfloat16(1)})
      .expect<bfloat16>({2}, {bfloat16(0.5f), bfloat16(0.5f)})
      .run();
  OpTest("Hardmax")
      .input<bfloat16>({2}, {bfloat16(1), bfloat16(1)})
      .expect<bfloat16>({2}, {bfloat16(1), bfloat16(0)})
      .run();
}

TEST(Softmax, DoublesOfEveryLength) {
  for (int64_t n : {1, 2, 3, 7, 8, 9, 255, 300}) {
    for (int64_t axis : {1, 2}) {
      const Shape shape = axis == 2 ? Shape{2, 3, n} : Shape{2, n, 3};
      const int64_t inner = axis == 2 ? 1 : 3;
      Tensor x(ElementType::float64, shape), soft(ElementType::float64, shape), logarithms(ElementType::float64, shape);
      const auto in = x.mutable_data<double>();
      for (size_t i = 0; i < in.size(); ++i) in[i] = static_cast<double>(i * 37 % 101) / 7 - 5;
      for (int64_t row = 0; row < 6; ++row) {
        const auto at = [&](int64_t i) {
          return static_cast<size_t>(row / inner * n * inner + row % inner + i * inner);
        };
        double sum = 0;
        for (int64_t i = 0; i < n; ++i) sum += std::exp(in[at(i)]);
        for (int64_t i = 0; i < n; ++i) {
          soft.mutable_data<double>()[at(i)] = std::exp(in[at(i)]) / sum;
          logarithms.mutable_data<double>()[at(i)] = in[at(i)] - std::log(sum);
        }
      }
      OpTest("Softmax").attribute("axis", axis).input(x).tolerance(1e-13, 1e-300).expect(soft).run();
      OpTest("LogSoftmax").attribute("axis", axis).input(x).tolerance(1e-13, 1e-13).expect(logarithms).run();
    }
  }
}

TEST(Softmax, OldVersions) {
  OpTest("Softmax", 11)
      .input<float>({1, 2, 2}, {1, 1, 1, 1})
      .expect<float>({1, 2, 2}, {0.25f, 0.25f, 0.25f, 0.25f})
      .run();
  OpTest("Softmax", 11)
      .attribute("axis", 2)
      .input<float>({1, 2, 2}, {1, 1, 1, 1})
      .expect<float>({1, 2, 2}, {0.5f, 0.5f, 0.5f, 0.5f})
      .run();
  OpTest("Hardmax", 1)
      .attribute("axis", 0)
      .input<float>({2, 2}, {1, 2, 3, 0})
      .expect<float>({2, 2}, {0, 0, 1, 0})
      .run();
}

TEST(Softmax, Errors) {
  EXPECT_EQ(OpTest("Softmax").attribute("axis", 2).input<float>({2, 2}, {1, 2, 3, 4}).error(),
            "invalid-attribute in Softmax 'tested' (node 0): axis 2 is out of range for rank 2\n"
            "  input 0 'in0' is tensor(float) [2, 2], an input of the graph");
}

}  // namespace
}  // namespace tenon

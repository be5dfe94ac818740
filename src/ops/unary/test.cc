#include "op_test.h"

namespace tenon {
namespace {

constexpr float infinity = std::numeric_limits<float>::infinity();

TEST(Unary, Floats) {
  struct Case {
    const char* op;
    float x, y;
  };
  for (const Case& c : {Case{"Abs", -2, 2},
                        Case{"Neg", 2, -2},
                        Case{"Sqrt", 9, 3},
                        Case{"Exp", 1, 2.7182818f},
                        Case{"Log", 2.7182818f, 1},
                        Case{"Erf", 0.5f, 0.5204999f},
                        Case{"Tanh", 0.5f, 0.4621172f},
                        Case{"Sigmoid", 1, 0.7310586f},
                        Case{"Relu", -1, 0},
                        Case{"Floor", -1.5f, -2},
                        Case{"Ceil", -1.5f, -1},
                        Case{"Round", 2.5f, 2},
                        Case{"Round", -1.5f, -2},
                        Case{"Reciprocal", 4, 0.25f},
                        Case{"Sign", -3, -1},
                        Case{"Sin", 1, 0.8414710f},
                        Case{"Cos", 1, 0.5403023f},
                        Case{"Tan", 1, 1.5574077f},
                        Case{"Asin", 0.5f, 0.5235988f},
                        Case{"Acos", 0.5f, 1.0471976f},
                        Case{"Atan", 1, 0.7853982f},
                        Case{"Sinh", 1, 1.1752012f},
                        Case{"Cosh", 1, 1.5430806f},
                        Case{"Asinh", 1, 0.8813736f},
                        Case{"Acosh", 2, 1.3169579f},
                        Case{"Atanh", 0.5f, 0.5493061f},
                        Case{"Softplus", 1, 1.3132617f},
                        Case{"Softsign", -1, -0.5f},
                        Case{"HardSwish", 1, 0.6666667f},
                        Case{"HardSwish", -4, 0},
                        Case{"Mish", 1, 0.8650984f}}) {
    OpTest(c.op).input<float>({3}, {c.x, c.x, c.x}).expect<float>({3}, {c.y, c.y, c.y}).run();
    OpTest(c.op).input<double>({}, {c.x}).expect<double>({}, {c.y}).run();
    OpTest(c.op).input<float16>({1}, {float16(c.x)}).expect<float16>({1}, {float16(c.y)}).tolerance(2e-3, 0).run();
    OpTest(c.op).input<bfloat16>({1}, {bfloat16(c.x)}).expect<bfloat16>({1}, {bfloat16(c.y)}).tolerance(2e-2, 0).run();
  }
  OpTest("Relu").input<float>({0, 2}, {}).expect<float>({0, 2}, {}).run();
  OpTest("Relu").input<float>({1}, {NAN}).expect<float>({1}, {NAN}).run();
}

TEST(Unary, Integers) {
  OpTest("Abs").input<int8_t>({3}, {-128, -5, 5}).expect<int8_t>({3}, {-128, 5, 5}).run();
  OpTest("Abs").input<uint64_t>({1}, {5}).expect<uint64_t>({1}, {5}).run();
  OpTest("Neg")
      .input<int64_t>({2}, {-7, std::numeric_limits<int64_t>::min()})
      .expect<int64_t>({2}, {7, std::numeric_limits<int64_t>::min()})
      .run();
  OpTest("Sign").input<int32_t>({3}, {-7, 0, 9}).expect<int32_t>({3}, {-1, 0, 1}).run();
  OpTest("Relu").input<int32_t>({2}, {-7, 9}).expect<int32_t>({2}, {0, 9}).run();
  OpTest("Not").input<bool>({2}, {true, false}).expect<bool>({2}, {false, true}).run();
  OpTest("BitwiseNot").input<uint8_t>({2}, {0, 0xf0}).expect<uint8_t>({2}, {0xff, 0x0f}).run();
}

template <typename T>
void expect_magnitudes() {
  for (int64_t n = 0; n < 70; ++n) {
    Tensor x(element_type_of<T>, {n}), y(element_type_of<T>, {n});
    for (int64_t i = 0; i < n; ++i) {
      const auto at = static_cast<size_t>(i);
      const auto value = static_cast<T>(i % 7 == 3 ? std::numeric_limits<T>::min() : (i * 37 % 101) - 50);
      x.mutable_data<T>()[at] = value;
      y.mutable_data<T>()[at] = value < 0 && value != std::numeric_limits<T>::min() ? static_cast<T>(-value) : value;
    }
    OpTest("Abs").input(x).expect(y).run();
  }
}

TEST(Unary, MagnitudesOfEveryLength) {
  expect_magnitudes<int8_t>();
  expect_magnitudes<int16_t>();
  expect_magnitudes<int32_t>();
  expect_magnitudes<int64_t>();
}

TEST(Unary, Predicates) {
  OpTest("IsNaN").input<float>({3}, {1, NAN, infinity}).expect<bool>({3}, {false, true, false}).run();
  OpTest("IsNaN").input<float16>({2}, {float16(NAN), float16(1)}).expect<bool>({2}, {true, false}).run();
  OpTest("IsNaN").input<float8e4m3fn>({2}, {float8e4m3fn(NAN), float8e4m3fn(1)}).expect<bool>({2}, {true, false}).run();
  OpTest("IsInf").input<float>({3}, {-infinity, NAN, infinity}).expect<bool>({3}, {true, false, true}).run();
  OpTest("IsInf")
      .attribute("detect_negative", 0)
      .input<double>({2}, {-infinity, infinity})
      .expect<bool>({2}, {false, true})
      .run();
}

TEST(Unary, OldVersions) {
  OpTest("Relu", 1)
      .attribute("consumed_inputs", std::vector<int64_t>{0})
      .input<float>({2}, {-1, 1})
      .expect<float>({2}, {0, 1})
      .run();
}

TEST(Unary, ErfOfIntegersIsTruncated) {
  OpTest("Erf").input<int32_t>({4}, {-9, -1, 0, 9}).expect<int32_t>({4}, {-1, 0, 0, 1}).run();
}

}  // namespace
}  // namespace tenon

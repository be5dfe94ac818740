#include "op_test.h"

namespace tenon {
namespace {

TEST(Binary, ConstantsMayWrapAround) {
  OpTest("Add").constant<int64_t>({1}, {INT64_MAX}).constant<int64_t>({1}, {1}).expect<int64_t>({1}, {INT64_MIN}).run();
}

TEST(Binary, Broadcast) {
  OpTest("Add")
      .input<float>({2, 3}, {1, 2, 3, 4, 5, 6})
      .input<float>({2, 3}, {1, 1, 1, 2, 2, 2})
      .expect<float>({2, 3}, {2, 3, 4, 6, 7, 8})
      .run();
  OpTest("Sub")
      .input<float>({2, 3}, {1, 2, 3, 4, 5, 6})
      .input<float>({3}, {1, 2, 3})
      .expect<float>({2, 3}, {0, 0, 0, 3, 3, 3})
      .run();
  OpTest("Sub")
      .input<float>({2, 1}, {1, 4})
      .input<float>({1, 3}, {1, 2, 3})
      .expect<float>({2, 3}, {0, -1, -2, 3, 2, 1})
      .run();
  OpTest("Mul").input<float>({}, {2}).input<float>({2, 2}, {1, 2, 3, 4}).expect<float>({2, 2}, {2, 4, 6, 8}).run();
  OpTest("Div")
      .input<float>({2, 2}, {1, 2, 3, 4})
      .input<float>({2, 1}, {1, 2})
      .expect<float>({2, 2}, {1, 2, 1.5f, 2})
      .run();
  OpTest("Add").input<float>({1, 1}, {1}).input<float>({}, {2}).expect<float>({1, 1}, {3}).run();
  OpTest("Add").input<float>({2, 0}, {}).input<float>({2, 1}, {1, 2}).expect<float>({2, 0}, {}).run();
  // Four axes of which no two can be walked as one.
  OpTest("Sub")
      .input<float>({2, 1, 2, 1}, {0, 10, 20, 30})
      .input<float>({1, 2, 1, 2}, {1, 2, 3, 4})
      .expect<float>({2, 2, 2, 2}, {-1, -2, 9, 8, -3, -4, 7, 6, 19, 18, 29, 28, 17, 16, 27, 26})
      .run();
}

TEST(Binary, LargeBroadcastMatchesScalarLoop) {
  constexpr int64_t n = 50, c = 64, w = 33;
  Tensor a(ElementType::float32, {n, c, w}), b(ElementType::float32, {c, 1}), y(ElementType::float32, {n, c, w});
  for (int64_t i = 0; i < n * c * w; ++i) a.mutable_data<float>()[static_cast<size_t>(i)] = static_cast<float>(i % 101);
  for (int64_t i = 0; i < c; ++i) b.mutable_data<float>()[static_cast<size_t>(i)] = static_cast<float>(i);
  for (int64_t i = 0; i < n * c * w; ++i) {
    auto at = static_cast<size_t>(i);
    y.mutable_data<float>()[at] = a.data<float>()[at] - b.data<float>()[static_cast<size_t>(i / w % c)];
  }
  OpTest("Sub").input(a).input(b).expect(y).run();
}

TEST(Binary, Integers) {
  OpTest("Add").input<int8_t>({2}, {127, 1}).input<int8_t>({}, {1}).expect<int8_t>({2}, {-128, 2}).run();
  OpTest("Mul").input<uint16_t>({1}, {65535}).input<uint16_t>({1}, {65535}).expect<uint16_t>({1}, {1}).run();
  OpTest("Div")
      .input<int32_t>({4}, {7, -7, 7, -7})
      .input<int32_t>({4}, {2, 2, -2, 0})
      .expect<int32_t>({4}, {3, -3, -3, 0})
      .run();
  OpTest("Div")
      .input<int64_t>({1}, {std::numeric_limits<int64_t>::min()})
      .input<int64_t>({1}, {-1})
      .expect<int64_t>({1}, {std::numeric_limits<int64_t>::min()})
      .run();
  OpTest("Mod")
      .input<int32_t>({5}, {7, -7, 7, -7, 7})
      .input<int32_t>({5}, {3, 3, -3, -3, 0})
      .expect<int32_t>({5}, {1, 2, -2, -1, 0})
      .run();
  OpTest("Mod")
      .attribute("fmod", 1)
      .input<int32_t>({2}, {7, -7})
      .input<int32_t>({2}, {-3, 3})
      .expect<int32_t>({2}, {1, -1})
      .run();
  OpTest("Mod")
      .input<int64_t>({1}, {std::numeric_limits<int64_t>::min()})
      .input<int64_t>({1}, {-1})
      .expect<int64_t>({1}, {0})
      .run();
  OpTest("BitwiseAnd").input<int16_t>({2}, {6, -1}).input<int16_t>({1}, {3}).expect<int16_t>({2}, {2, 3}).run();
  OpTest("BitwiseOr").input<uint8_t>({1}, {6}).input<uint8_t>({1}, {3}).expect<uint8_t>({1}, {7}).run();
  OpTest("BitwiseXor").input<int64_t>({1}, {6}).input<int64_t>({1}, {3}).expect<int64_t>({1}, {5}).run();
}

// To the bit, whatever the sizes: quotients of few bits and of many, no normal numbers, zeros with signs.
TEST(Binary, RestsOfFloatsAreThoseOfFmod) {
  const std::vector<float> some{0,     -0.0f,     1,      -1,    3,         -7.5f,          0.1f,          123456.7f,
                                1e-9f, 3.3e10f,   -2e20f, 1e38f, 0x1p-149f, -0x1.8p-130f,   16777215.0f,   -16777213.0f,
                                5e-3f, 0.333333f, 1e30f,  2.5f,  0x1p28f,   0x1.fffffep27f, -0x1.fffffep1f};
  const auto count = std::ssize(some);
  Tensor a(ElementType::float32, {count, 1}), b(ElementType::float32, {count}),
      rests(ElementType::float32, {count, count});
  std::ranges::copy(some, a.mutable_data<float>().begin());
  std::ranges::copy(some, b.mutable_data<float>().begin());
  auto expected = rests.mutable_data<float>().begin();
  for (float dividend : some) {
    for (float divisor : some) *expected++ = std::fmod(dividend, divisor);
  }
  OpTest("Mod").attribute("fmod", 1).input(a).input(b).expect(rests).tolerance(0, 0).run();

  const float infinite = std::numeric_limits<float>::infinity(), nan = std::numeric_limits<float>::quiet_NaN();
  OpTest("Mod")
      .attribute("fmod", 1)
      .input<float>({5}, {infinite, 5, -5, nan, 3})
      .input<float>({5}, {2, infinite, -infinite, 2, nan})
      .expect<float>({5}, {nan, 5, -5, nan, nan})
      .run();
}

TEST(Binary, Floats) {
  OpTest("Mod")
      .attribute("fmod", 1)
      .input<float>({2}, {5.5f, -5.5f})
      .input<float>({2}, {2, 2})
      .expect<float>({2}, {1.5f, -1.5f})
      .run();
  OpTest("Mod").input<float>({2}, {5.5f, -5.5f}).input<float>({2}, {-2, 2}).expect<float>({2}, {-0.5f, 0.5f}).run();
  OpTest("Add")
      .input<float16>({1}, {float16(1)})
      .input<float16>({1}, {float16(2)})
      .expect<float16>({1}, {float16(3)})
      .run();
  OpTest("Mul")
      .input<bfloat16>({1}, {bfloat16(3)})
      .input<bfloat16>({1}, {bfloat16(2)})
      .expect<bfloat16>({1}, {bfloat16(6)})
      .run();
  OpTest("Div")
      .input<double>({1}, {1})
      .input<double>({1}, {0})
      .expect<double>({1}, {std::numeric_limits<double>::infinity()})
      .run();
}

Tensor halves(const Shape& shape, const std::vector<float16>& values) {
  Tensor result(ElementType::float16, shape);
  std::ranges::copy(values, result.mutable_data<float16>().begin());
  return result;
}

TEST(Binary, LongRowsOfHalvesMatchScalarLoop) {
  const int64_t rows = 3, columns = 1100;
  std::vector<float16> a, b;
  for (int64_t i = 0; i < rows * columns; ++i) {
    a.push_back(float16(0.01f * static_cast<float>(i % 997) - 3));
    b.push_back(float16(0.5f + 0.003f * static_cast<float>(i % 1013)));
  }
  struct Operator {
    const char* name;
    float (*call)(float, float);
  };
  const Operator operators[] = {{"Add", [](float x, float y) { return x + y; }},
                                {"Sub", [](float x, float y) { return x - y; }},
                                {"Mul", [](float x, float y) { return x * y; }},
                                {"Div", [](float x, float y) { return x / y; }}};
  for (const Operator& op : operators) {
    for (const Shape& shape : {Shape{rows, columns}, Shape{columns}, Shape{rows, 1}, Shape{1}}) {
      const std::vector<float16> right(b.begin(), b.begin() + shape.elements());
      std::vector<float16> expected, swapped;
      for (int64_t i = 0; i < rows * columns; ++i) {
        const bool by_row = shape.rank() == 2 && shape[1] == 1;
        const int64_t at = by_row ? i / columns : i % shape.elements();
        const auto x = static_cast<float>(a[static_cast<size_t>(i)]),
                   y = static_cast<float>(right[static_cast<size_t>(at)]);
        expected.push_back(float16(op.call(x, y)));
        swapped.push_back(float16(op.call(y, x)));
      }
      const Shape whole{rows, columns};
      OpTest(op.name).input(halves(whole, a)).input(halves(shape, right)).expect(halves(whole, expected)).run();
      OpTest(op.name).input(halves(shape, right)).input(halves(whole, a)).expect(halves(whole, swapped)).run();
    }
  }
}

TEST(Pow, Types) {
  OpTest("Pow").input<float>({3}, {1, 2, 3}).input<float>({3}, {4, 5, 6}).expect<float>({3}, {1, 32, 729}).run();
  OpTest("Pow").input<float>({3}, {1, 2, 3}).constant<float>({}, {2}).expect<float>({3}, {1, 4, 9}).run();
  OpTest("Pow").input<float>({}, {3}).constant<int64_t>({1, 1}, {2}).expect<float>({1, 1}, {9}).run();
  OpTest("Pow").input<float>({2}, {4, 9}).constant<float>({1}, {0.5f}).expect<float>({2}, {2, 3}).run();
  OpTest("Pow").input<int32_t>({3}, {2, -2, 0}).input<int32_t>({3}, {3, 3, 0}).expect<int32_t>({3}, {8, -8, 1}).run();
  OpTest("Pow").input<int64_t>({4}, {2, 1, -1, 0}).input<int64_t>({}, {-1}).expect<int64_t>({4}, {0, 1, -1, 0}).run();
  OpTest("Pow").input<int64_t>({2}, {2, 9}).input<float>({}, {0.5f}).expect<int64_t>({2}, {1, 3}).run();
  OpTest("Pow").input<float16>({1}, {float16(2)}).input<int32_t>({1}, {3}).expect<float16>({1}, {float16(8)}).run();
}

TEST(Compare, Types) {
  OpTest("Less").input<uint8_t>({2}, {200, 1}).input<uint8_t>({2}, {1, 200}).expect<bool>({2}, {false, true}).run();
  OpTest("LessOrEqual")
      .input<int8_t>({3}, {-1, 1, 2})
      .input<int8_t>({}, {1})
      .expect<bool>({3}, {true, true, false})
      .run();
  OpTest("Greater").input<float>({2}, {1, NAN}).input<float>({}, {0}).expect<bool>({2}, {true, false}).run();
  OpTest("GreaterOrEqual")
      .input<float16>({2}, {float16(1), float16(-1)})
      .input<float16>({}, {float16(1)})
      .expect<bool>({2}, {true, false})
      .run();
  OpTest("Equal")
      .input<std::string>({2}, {"a", "b"})
      .input<std::string>({1}, {"a"})
      .expect<bool>({2}, {true, false})
      .run();
  OpTest("Equal").input<bool>({2}, {true, false}).input<bool>({2}, {true, true}).expect<bool>({2}, {true, false}).run();
  OpTest("Equal").input<float>({2}, {0.0f, NAN}).input<float>({2}, {-0.0f, NAN}).expect<bool>({2}, {true, false}).run();
  OpTest("And")
      .input<bool>({2, 1}, {true, false})
      .input<bool>({2}, {true, false})
      .expect<bool>({2, 2}, {true, false, false, false})
      .run();
  OpTest("Or").input<bool>({2}, {true, false}).input<bool>({}, {false}).expect<bool>({2}, {true, false}).run();
  OpTest("Xor").input<bool>({2}, {true, false}).input<bool>({}, {true}).expect<bool>({2}, {false, true}).run();
}

TEST(BitShift, Directions) {
  OpTest("BitShift")
      .attribute("direction", "LEFT")
      .input<uint8_t>({3}, {1, 255, 1})
      .input<uint8_t>({3}, {3, 4, 8})
      .expect<uint8_t>({3}, {8, 240, 0})
      .run();
  OpTest("BitShift")
      .attribute("direction", "RIGHT")
      .input<int8_t>({4}, {-8, -8, 8, -8})
      .input<int8_t>({4}, {1, 100, 100, -1})
      .expect<int8_t>({4}, {-4, -1, 0, -1})
      .run();
  EXPECT_EQ(OpTest("BitShift").attribute("direction", "UP").input<uint8_t>({1}, {1}).input<uint8_t>({1}, {1}).error(),
            "invalid-attribute in BitShift 'tested' (node 0): direction is 'UP', it must be LEFT or RIGHT");
}

TEST(PRelu, Slopes) {
  OpTest("PRelu")
      .input<float>({2, 2}, {-1, 2, -3, 4})
      .input<float>({2}, {0.5f, 2})
      .expect<float>({2, 2}, {-0.5f, 2, -1.5f, 4})
      .run();
  OpTest("PRelu").input<int32_t>({2}, {-1, 2}).input<int32_t>({1}, {3}).expect<int32_t>({2}, {-3, 2}).run();
}

TEST(Binary, OldVersions) {
  OpTest("Add", 6)
      .attribute("broadcast", 1)
      .attribute("axis", 0)
      .input<float>({2, 2}, {1, 2, 3, 4})
      .input<float>({2}, {10, 20})
      .expect<float>({2, 2}, {11, 12, 23, 24})
      .run();
  OpTest("Add", 6)
      .attribute("broadcast", 1)
      .attribute("axis", 1)
      .input<float>({1, 2, 2}, {1, 2, 3, 4})
      .constant<float>({2}, {10, 20})
      .expect<float>({1, 2, 2}, {11, 12, 23, 24})
      .run();
  OpTest("Mul", 6)
      .attribute("broadcast", 1)
      .input<float>({2, 2}, {1, 2, 3, 4})
      .input<float>({2}, {1, 2})
      .expect<float>({2, 2}, {1, 4, 3, 8})
      .run();
  OpTest("Greater", 1)
      .attribute("broadcast", 1)
      .attribute("axis", -2)
      .input<float>({2, 2}, {1, 2, 3, 4})
      .input<float>({2}, {1, 3})
      .expect<bool>({2, 2}, {false, true, false, true})
      .run();
  OpTest("Sub", 1)
      .attribute("consumed_inputs", std::vector<int64_t>{0, 0})
      .input<float>({1}, {3})
      .input<float>({1}, {1})
      .expect<float>({1}, {2})
      .run();
  OpTest("PRelu", 6)
      .input<float>({1, 2, 2}, {-1, -2, -3, -4})
      .input<float>({2}, {1, 2})
      .expect<float>({1, 2, 2}, {-1, -2, -6, -8})
      .run();
}

TEST(Binary, Errors) {
  EXPECT_EQ(OpTest("Add").input<float>({2}, {1, 2}).input<float>({3}, {1, 2, 3}).error(),
            "shape-mismatch in Add 'tested' (node 0): shapes [2] and [3] cannot be broadcast: 2 against 3 on axis 0\n"
            "  input 0 'in0' is tensor(float) [2], an input of the graph\n"
            "  input 1 'in1' is tensor(float) [3], an input of the graph");
}

}  // namespace
}  // namespace tenon

#include "op_test.h"

namespace tenon {
namespace {

int number(ElementType type) { return static_cast<int>(type); }

// Codes of a type below 8 bits.
Tensor packed(ElementType type, std::initializer_list<int> codes) {
  Tensor tensor(type, Shape{static_cast<int64_t>(codes.size())});
  std::fill_n(static_cast<char*>(tensor.mutable_raw()), tensor.bytes(), 0);
  int64_t at = 0;
  for (int code : codes)
    store_packed(tensor.mutable_raw(), bits_of(type), at++, static_cast<uint8_t>(code & ((1 << bits_of(type)) - 1)));
  return tensor;
}

TEST(Cast, Numbers) {
  using enum ElementType;
  OpTest("Cast")
      .attribute("to", number(int64))
      .input<float>({4}, {1.9f, -1.9f, NAN, 1e30f})
      .expect<int64_t>({4}, {1, -1, 0, std::numeric_limits<int64_t>::max()})
      .run();
  OpTest("Cast")
      .attribute("to", number(int32))
      .input<double>({3}, {1.9, -1e300, 1e300})
      .expect<int32_t>({3}, {1, std::numeric_limits<int32_t>::min(), std::numeric_limits<int32_t>::max()})
      .run();
  OpTest("Cast")
      .attribute("to", number(uint64))
      .input<float>({2}, {-1, 1.8e19f})
      .expect<uint64_t>({2}, {~uint64_t{0}, 18000000404716257280u})
      .run();
  OpTest("Cast").attribute("to", number(uint8)).input<float>({2}, {255, -1}).expect<uint8_t>({2}, {255, 255}).run();
  OpTest("Cast").attribute("to", number(int8)).input<int16_t>({1}, {200}).expect<int8_t>({1}, {-56}).run();
  OpTest("Cast")
      .attribute("to", number(boolean))
      .input<float>({3}, {0, -0.0f, 0.5f})
      .expect<bool>({3}, {false, false, true})
      .run();
  OpTest("Cast").attribute("to", number(float32)).input<bool>({2}, {true, false}).expect<float>({2}, {1, 0}).run();
  OpTest("Cast")
      .attribute("to", number(ElementType::float16))
      .input<float>({2}, {1.5f, 1e6f})
      .expect<tenon::float16>({2}, {tenon::float16(1.5f), tenon::float16(INFINITY)})
      .run();
  OpTest("Cast")
      .attribute("to", number(int64))
      .input<tenon::float16>({1}, {tenon::float16(7)})
      .expect<int64_t>({1}, {7})
      .run();
  OpTest("Cast")
      .attribute("to", number(ElementType::bfloat16))
      .input<tenon::float16>({1}, {tenon::float16(7)})
      .expect<tenon::bfloat16>({1}, {tenon::bfloat16(7)})
      .run();
  OpTest("Cast").attribute("to", number(float32)).input<float>({2}, {1, 2}).expect<float>({2}, {1, 2}).run();
}

template <typename T>
Tensor tensor_of(const std::vector<T>& values) {
  Tensor tensor(element_type_of<T>, Shape{static_cast<int64_t>(values.size())});
  std::ranges::copy(values, tensor.mutable_data<T>().begin());
  return tensor;
}

// Numbers as `to`, in arrays of every length: converted by vectors and one by one.
template <typename From, typename To>
void expect_cast(ElementType to, const std::vector<From>& numbers, const std::vector<To>& expected) {
  for (size_t n = 1; n < 40; ++n) {
    std::vector<From> x;
    std::vector<To> y;
    for (size_t i = 0; i < n; ++i) {
      x.push_back(numbers[i % numbers.size()]);
      y.push_back(expected[i % numbers.size()]);
    }
    OpTest("Cast").attribute("to", number(to)).input(tensor_of(x)).expect(tensor_of(y)).run();
  }
}

TEST(Cast, LimitsInVectors) {
  using enum ElementType;
  constexpr int32_t low = std::numeric_limits<int32_t>::min(), high = std::numeric_limits<int32_t>::max();
  constexpr int64_t lowest = std::numeric_limits<int64_t>::min(), highest = std::numeric_limits<int64_t>::max();
  const std::vector<float> numbers = {1.9f, -2.9f, NAN, 3e9f, -3e9f, 300.5f, INFINITY, -INFINITY, -0.0f};
  expect_cast<float, int32_t>(int32, numbers, {1, -2, 0, high, low, 300, high, low, 0});
  expect_cast<float, int64_t>(int64, numbers, {1, -2, 0, 3000000000, -3000000000, 300, highest, lowest, 0});
  expect_cast<float, uint8_t>(uint8, numbers, {1, 254, 0, 255, 0, 44, 255, 0, 0});
  expect_cast<int64_t, float>(float32, {1, -2, 1000}, {1, -2, 1000});
  expect_cast<int64_t, float>(float32, {1, 3000000000, lowest, -1}, {1, 3e9f, -9223372036854775808.0f, -1});
}

// One number that does not fit into 32 bits, at every place.
TEST(Cast, OneNumberBeyondTheOthers) {
  expect_cast<float, int64_t>(ElementType::int64, {1.9f, -2.9f, 2147483520.0f, -2147483648.0f},
                              {1, -2, 2147483520, -2147483648});
  for (size_t at = 0; at < 40; ++at) {
    std::vector<float> x(40, -1.5f);
    x[at] = 2147483648.0f;
    std::vector<int64_t> y(40, -1);
    y[at] = 2147483648;
    OpTest("Cast").attribute("to", number(ElementType::int64)).input(tensor_of(x)).expect(tensor_of(y)).run();
  }
}

TEST(Cast, SmallTypes) {
  using enum ElementType;
  OpTest("Cast").attribute("to", number(int8)).input(packed(int4, {-8, 7, -1})).expect<int8_t>({3}, {-8, 7, -1}).run();
  OpTest("Cast")
      .attribute("to", number(float32))
      .input(packed(uint2, {0, 1, 2, 3, 1}))
      .expect<float>({5}, {0, 1, 2, 3, 1})
      .run();
  OpTest("Cast")
      .attribute("to", number(int4))
      .input<float>({6}, {-8, 7, -1.5f, 2.5f, 3.5f, 1.2f})
      .expect(packed(int4, {-8, 7, -2, 2, 4, 1}))
      .run();
  OpTest("Cast")
      .attribute("to", number(uint2))
      .input<double>({3}, {0.9, 4.8, 2.4})
      .expect(packed(uint2, {1, 1, 2}))
      .run();
  OpTest("Cast")
      .attribute("to", number(float4e2m1))
      .input<float>({4}, {0.5f, 1.5f, -6, 100})
      .expect(packed(float4e2m1, {1, 3, 15, 7}))
      .run();
  OpTest("Cast")
      .attribute("to", number(ElementType::float8e5m2))
      .attribute("saturate", 0)
      .input<float>({1}, {1e9f})
      .expect<tenon::float8e5m2>({1}, {tenon::float8e5m2(INFINITY, false)})
      .run();
  OpTest("Cast")
      .attribute("to", number(float32))
      .input<tenon::float8e4m3fn>({2}, {tenon::float8e4m3fn(1.5f), tenon::float8e4m3fn(-448)})
      .expect<float>({2}, {1.5f, -448})
      .run();
}

TEST(Cast, ScaleFactorsRound) {
  using enum ElementType;
  for (auto [mode, code] : {std::pair{"up", 128}, std::pair{"down", 127}, std::pair{"nearest", 127}}) {
    Tensor expected = Tensor(ElementType::float8e8m0, {1});
    *static_cast<uint8_t*>(expected.mutable_raw()) = static_cast<uint8_t>(code);
    OpTest("Cast")
        .attribute("to", number(ElementType::float8e8m0))
        .attribute("round_mode", mode)
        .input<float>({1}, {1.25f})
        .expect(expected)
        .run();
  }
}

TEST(Cast, Text) {
  using enum ElementType;
  OpTest("Cast")
      .attribute("to", number(string))
      .input<float>({4}, {0.1f, -2, INFINITY, NAN})
      .expect<std::string>({4}, {"0.1", "-2", "INF", "NaN"})
      .run();
  OpTest("Cast").attribute("to", number(string)).input<uint8_t>({1}, {7}).expect<std::string>({1}, {"7"}).run();
  OpTest("Cast")
      .attribute("to", number(float32))
      .input<std::string>({4}, {"1e-5", " 3.14 ", "+inf", "-INF"})
      .expect<float>({4}, {1e-5f, 3.14f, INFINITY, -INFINITY})
      .run();
  OpTest("Cast")
      .attribute("to", number(int64))
      .input<std::string>({2}, {"-42", "9223372036854775807"})
      .expect<int64_t>({2}, {-42, std::numeric_limits<int64_t>::max()})
      .run();
  EXPECT_EQ(OpTest("Cast").attribute("to", number(float32)).input<std::string>({1}, {"Hello"}).error(),
            "invalid-value in Cast 'tested' (node 0): 'Hello' is not a number");
}

TEST(CastLike, TakesTheTypeOfTheSecondInput) {
  OpTest("CastLike").input<float>({2}, {1.5f, 2}).input<int32_t>({0}, {}).expect<int32_t>({2}, {1, 2}).run();
}

TEST(BitCast, KeepsTheBits) {
  OpTest("BitCast")
      .attribute("to", number(ElementType::int32))
      .input<float>({2}, {1, -2})
      .expect<int32_t>({2}, {0x3f800000, int32_t(0xc0000000)})
      .run();
  EXPECT_EQ(OpTest("BitCast").attribute("to", number(ElementType::int64)).input<float>({1}, {1}).error(),
            "invalid-attribute in BitCast 'tested' (node 0): float has 32 bits, int64 has 64: a BitCast keeps them\n"
            "  input 0 'in0' is tensor(float) [1], an input of the graph");
}

TEST(Cast, OldVersions) {
  OpTest("Cast", 1).attribute("to", "INT64").input<float>({1}, {1.5f}).expect<int64_t>({1}, {1}).run();
}

}  // namespace
}  // namespace tenon

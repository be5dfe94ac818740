#include "op_test.h"

namespace tenon {
namespace {

template <typename T>
OpTest range(T start, T limit, T delta) {
  OpTest test("Range", sizeof(T) == 2 ? 28 : 11);
  test.input<T>({}, {start}).template input<T>({}, {limit}).template input<T>({}, {delta});
  return test;
}

TEST(Range, Numbers) {
  range<int64_t>(3, 9, 3).expect<int64_t>({2}, {3, 6}).run();
  range<int64_t>(10, 4, -2).expect<int64_t>({3}, {10, 8, 6}).run();
  range<int32_t>(3, 3, 1).expect<int32_t>({0}, {}).run();
  range<int64_t>(0, 5, -1).expect<int64_t>({0}, {}).run();
  range<int64_t>(INT64_MIN, INT64_MAX, INT64_MAX).expect<int64_t>({3}, {INT64_MIN, -1, INT64_MAX - 1}).run();
  range<float>(0, 1, 0.4f).expect<float>({3}, {0, 0.4f, 0.8f}).run();
  range<float16>(float16(1), float16(3), float16(1)).expect<float16>({2}, {float16(1), float16(2)}).run();
}

TEST(Range, Errors) {
  EXPECT_NE(range<int64_t>(0, 5, 0).error().find("delta is 0"), std::string::npos);
  EXPECT_NE(range<int32_t>(5, 0, 0).error().find("delta is 0"), std::string::npos);
  EXPECT_NE(range<float>(0, 0, 0).error().find("delta is 0"), std::string::npos);
  EXPECT_NE(range<double>(1, 0, 0).error().find("delta is 0"), std::string::npos);
  EXPECT_NE(range<float16>(float16(0), float16(1), float16(0)).error().find("delta is 0"), std::string::npos);
  EXPECT_NE(range<float>(0, NAN, 1).error().find("has no length"), std::string::npos);
  EXPECT_NE(range<int64_t>(INT64_MIN, INT64_MAX, 1).error().find("is too long"), std::string::npos);
  EXPECT_NE(range<float>(0, INFINITY, 1).error().find("a range from 0 to inf by 1 has no length"), std::string::npos);
}

TEST(Range, LongOnesOfIntegers) {
  const auto check = [](auto zero) {
    using T = decltype(zero);
    for (int length : {7, 53, 64, 65, 128, 1000, 20011}) {
      if (length > std::numeric_limits<T>::max() / 2) continue;
      std::vector<T> expected;
      for (int i = 0; i < length; ++i) expected.push_back(static_cast<T>(3 + i));
      range<T>(3, static_cast<T>(3 + length), 1)
          .expect(Tensor(Shape{length}, std::span<const T>(expected)))
          .tolerance(0, 0)
          .run();
    }
  };
  check(int16_t{});
  check(int32_t{});
  check(int64_t{});
}

}  // namespace
}  // namespace tenon

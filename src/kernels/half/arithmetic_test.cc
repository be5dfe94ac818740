#include "kernels/half/arithmetic.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "kernels/half/half.h"
#include "tenon/scalar.h"

namespace tenon::kernels {
namespace {

float computed(HalfOperation operation, uint16_t x, uint16_t y) {
  const auto a = static_cast<float>(float16::from_bits(x)), b = static_cast<float>(float16::from_bits(y));
  switch (operation) {
    case HalfOperation::add:
      return a + b;
    case HalfOperation::subtract:
      return a - b;
    case HalfOperation::multiply:
      return a * b;
    case HalfOperation::divide:
      return a / b;
  }
  return NAN;
}

constexpr HalfOperation all_operations[] = {HalfOperation::add, HalfOperation::subtract, HalfOperation::multiply,
                                            HalfOperation::divide};

// Codes of all kinds of numbers.
std::vector<uint16_t> codes(int64_t count, uint32_t seed) {
  std::vector<uint16_t> result(static_cast<size_t>(count));
  for (uint16_t& code : result) {
    seed = seed * 1664525 + 1013904223;
    code = static_cast<uint16_t>(seed >> 16);
  }
  return result;
}

TEST(HalfArithmetic, GivesWhatFloatsRoundTo) {
  if (!has_half_arithmetic()) GTEST_SKIP() << "this processor has no arithmetic of half precision";
  struct Case {
    int64_t rows, columns, a_row, b_row, a_step, b_step;
  };
  const Case cases[] = {{1, 9000, 0, 0, 1, 1}, {5, 16, 16, 0, 1, 1}, {5, 16, 0, 16, 1, 1}, {3, 13, 13, 1, 1, 0},
                        {3, 13, 1, 13, 0, 1},  {2, 7, 7, 7, 1, 1},   {4, 5, 1, 1, 0, 0},   {0, 4, 4, 4, 1, 1},
                        {6, 16, 16, 16, 1, 1}, {3, 24, 24, 0, 1, 1}};
  for (const Case& c : cases) {
    for (HalfOperation operation : all_operations) {
      const std::vector<uint16_t> a = codes(c.rows * c.columns + 1, 1), b = codes(c.rows * c.columns + 1, 2);
      std::vector<uint16_t> y(static_cast<size_t>(c.rows * c.columns) + 1, 7);
      f16_arithmetic(operation,
                     {a.data(), b.data(), y.data(), c.rows, c.columns, c.a_row, c.b_row, c.a_step, c.b_step});
      for (int64_t i = 0; i < c.rows * c.columns; ++i) {
        const int64_t row = i / c.columns, column = i % c.columns;
        const float expected = computed(operation, a[static_cast<size_t>(row * c.a_row + column * c.a_step)],
                                        b[static_cast<size_t>(row * c.b_row + column * c.b_step)]);
        const float16 result = float16::from_bits(y[static_cast<size_t>(i)]);
        if (std::isnan(expected))
          ASSERT_TRUE(std::isnan(static_cast<float>(result)));
        else
          ASSERT_EQ(result.bits, float16(expected).bits) << "case " << &c - cases << " at " << i;
      }
      EXPECT_EQ(y.back(), 7);
    }
  }
}

TEST(HalfArithmetic, CanBeTurnedOff) {
  const ScopedIsa forced(Isa::portable);
  EXPECT_FALSE(has_half_arithmetic());
}

}  // namespace
}  // namespace tenon::kernels

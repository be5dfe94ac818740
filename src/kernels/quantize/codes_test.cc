#include "kernels/quantize/codes.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

namespace tenon::kernels {
namespace {

template <class T>
std::vector<T> codes(size_t count, uint32_t seed) {
  std::vector<T> result(count);
  for (T& code : result) {
    seed = seed * 1664525 + 1013904223;
    code = static_cast<T>(seed >> 13);
  }
  return result;
}

template <class T>
T limited(float value, int32_t zero) {
  using Limits = std::numeric_limits<T>;
  const float low = static_cast<float>(Limits::min() - zero), high = static_cast<float>(Limits::max() - zero);
  return static_cast<T>(static_cast<int32_t>(std::nearbyint(std::fmin(std::fmax(value, low), high))) + zero);
}

class CodesTest : public testing::TestWithParam<Isa> {
 protected:
  template <class T>
  static void check(int64_t a_step, int64_t b_step) {
    const CodeArithmetic by{std::is_signed_v<T> ? -17 : 130, std::is_signed_v<T> ? 64 : 3,
                            std::is_signed_v<T> ? 5 : 120, 0.37f, 1.13f};
    for (size_t n : {0, 1, 3, 15, 16, 17, 63, 64, 100, 1001}) {
      const std::vector<T> a = codes<T>(n + 1, 3), b = codes<T>(n + 1, 8);
      std::vector<T> sum(n), product(n);
      add_codes(by, Codes<T>{a.data(), a_step}, Codes<T>{b.data(), b_step}, sum.data(), static_cast<int64_t>(n));
      multiply_codes(by, Codes<T>{a.data(), a_step}, Codes<T>{b.data(), b_step}, product.data(),
                     static_cast<int64_t>(n));
      for (size_t i = 0; i < n; ++i) {
        const auto x = static_cast<float>(a[a_step ? i : 0] - by.a_zero),
                   y = static_cast<float>(b[b_step ? i : 0] - by.b_zero);
        ASSERT_EQ(sum[i], limited<T>(x * by.a_factor + y * by.b_factor, by.zero)) << i << " of " << n;
        ASSERT_EQ(product[i], limited<T>(x * y * by.a_factor, by.zero)) << i << " of " << n;
      }
    }
  }
};

TEST_P(CodesTest, Arithmetic) {
  const ScopedIsa forced(GetParam());
  ASSERT_EQ(code_kernels().isa, GetParam());
  for (auto [a, b] : {std::pair{1, 1}, {1, 0}, {0, 1}, {0, 0}}) {
    check<uint8_t>(a, b);
    check<int8_t>(a, b);
  }
}

TEST(Codes, GreatestOfRows) {
  for (size_t n : {1, 15, 16, 17, 63, 64, 65, 100, 200}) {
    for (size_t count : {1, 2, 9}) {
      const std::vector<int8_t> all = codes<int8_t>(n * count, 5);
      std::vector<const int8_t*> rows;
      for (size_t r = 0; r < count; ++r) rows.push_back(all.data() + r * n);
      std::vector<int8_t> y(n + 1, 99);
      greatest_codes(rows.data(), static_cast<int64_t>(count), static_cast<int64_t>(n), y.data());
      for (size_t i = 0; i < n; ++i) {
        int8_t best = -128;
        for (size_t r = 0; r < count; ++r) best = std::max(best, rows[r][i]);
        ASSERT_EQ(y[i], best) << i << " of " << n;
      }
      ASSERT_EQ(y[n], 99);
    }
  }
}

TEST_P(CodesTest, LookUp) {
  const ScopedIsa forced(GetParam());
  const std::vector<uint8_t> table = codes<uint8_t>(256, 4);
  for (size_t n : {0, 1, 15, 16, 17, 500}) {
    const std::vector<uint8_t> x = codes<uint8_t>(n, 9);
    std::vector<uint8_t> y(n);
    look_up_codes(table.data(), x.data(), y.data(), static_cast<int64_t>(n));
    for (size_t i = 0; i < n; ++i) ASSERT_EQ(y[i], table[x[i]]);
  }
}

template <class T>
void check_sums() {
  constexpr size_t channels = 300, count = 1000;
  const std::vector<T> rows(channels * count, std::numeric_limits<T>::max());
  std::vector<int32_t> sums(channels, 7);
  sum_codes(rows.data(), count, channels, sums.data());
  for (int32_t sum : sums) ASSERT_EQ(sum, 7 + 1000 * std::numeric_limits<T>::max());
}

TEST(Codes, Sums) {
  check_sums<uint8_t>();
  check_sums<int8_t>();
}

TEST(Codes, Flip) {
  const std::vector<uint8_t> x = codes<uint8_t>(100, 9);
  std::vector<uint8_t> y(100);
  flip_codes(x.data(), y.data(), 100);
  for (size_t i = 0; i < 100; ++i) ASSERT_EQ(static_cast<int8_t>(y[i]), x[i] - 128);
}

INSTANTIATE_TEST_SUITE_P(Isas, CodesTest, testing::ValuesIn(available_isas(cpu_features())),
                         [](const auto& isa) { return std::string(isa_name(isa.param)); });

}  // namespace
}  // namespace tenon::kernels

#include "kernels/gemm_int8/gemm_int8.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "kernels/scratch.h"

namespace tenon::kernels {
namespace {

std::vector<uint8_t> bytes(int64_t count, int seed) {
  std::vector<uint8_t> result(static_cast<size_t>(count));
  for (size_t i = 0; i < result.size(); ++i)
    result[i] = static_cast<uint8_t>(i * 151 + i / 7 * 37 + i * i * 5 + static_cast<size_t>(seed));
  return result;
}

std::vector<int32_t> zero_points(int64_t count, bool is_signed) {
  std::vector<int32_t> result(static_cast<size_t>(count));
  for (size_t i = 0; i < result.size(); ++i) result[i] = static_cast<int32_t>(i * 67 % 256) - (is_signed ? 128 : 0);
  return result;
}

int32_t value(const std::vector<uint8_t>& data, int64_t index, bool is_signed) {
  const uint8_t byte = data[static_cast<size_t>(index)];
  return is_signed ? static_cast<int8_t>(byte) : byte;
}

struct Case {
  bool a_signed, b_signed, a_transposed, b_transposed, a_by_row, b_by_column;
};

class GemmInt8 : public testing::TestWithParam<const Int8Kernels*> {
 protected:
  void check(int64_t m, int64_t n, int64_t k, const Case& t) {
    ThreadPool pool(2);
    const auto a = bytes(m * k, 1), b = bytes(k * n, 2);
    const auto a_zeros = zero_points(m, t.a_signed), b_zeros = zero_points(n, t.b_signed);
    const PackedBytes left(pool, GemmSide::left, m, k, {a.data(), t.a_signed, t.a_transposed ? m : k, t.a_transposed},
                           {a_zeros.data(), t.a_by_row}, *GetParam());
    const PackedBytes right(pool, GemmSide::right, n, k, {b.data(), t.b_signed, t.b_transposed ? k : n, t.b_transposed},
                            {b_zeros.data(), t.b_by_column}, *GetParam());
    std::vector<int32_t> c(static_cast<size_t>(m * (n + 1)), 99);
    multiply_panels(&pool, left.panels(), right.panels(), a_zeros.data(), c.data(), n + 1);
    for (int64_t i = 0; i < m; ++i) {
      for (int64_t j = 0; j < n; ++j) {
        const int32_t za = a_zeros[t.a_by_row ? static_cast<size_t>(i) : 0],
                      zb = b_zeros[t.b_by_column ? static_cast<size_t>(j) : 0];
        int32_t sum = a_zeros[static_cast<size_t>(i)];
        for (int64_t p = 0; p < k; ++p) {
          sum += (value(a, t.a_transposed ? p * m + i : i * k + p, t.a_signed) - za) *
                 (value(b, t.b_transposed ? j * k + p : p * n + j, t.b_signed) - zb);
        }
        ASSERT_EQ(c[static_cast<size_t>(i * (n + 1) + j)], sum) << m << " " << n << " " << k << " at " << i << " " << j;
        c[static_cast<size_t>(i * (n + 1) + j)] += b_zeros[static_cast<size_t>(j)] - a_zeros[static_cast<size_t>(i)];
      }
      ASSERT_EQ(c[static_cast<size_t>(i * (n + 1) + n)], 99);
    }
    std::vector<int32_t> d(c.size(), 99);
    multiply_panels(&pool, left.panels(), right.panels(), b_zeros.data(), stored_sums(d.data(), n + 1));
    ASSERT_EQ(c, d) << m << " " << n << " " << k;
  }
};

TEST_P(GemmInt8, MatchesReference) {
  const int64_t shapes[][3] = {{1, 1, 1}, {2, 7, 3},    {3, 8, 8},    {8, 9, 16},   {9, 33, 17},
                               {5, 3, 0}, {17, 64, 40}, {70, 65, 66}, {1, 40, 100}, {34, 97, 130}};
  for (const auto& [m, n, k] : shapes) {
    for (int bits = 0; bits < 64; ++bits) {
      check(m, n, k,
            {(bits & 1) != 0, (bits & 2) != 0, (bits & 4) != 0, (bits & 8) != 0, (bits & 16) != 0, (bits & 32) != 0});
    }
  }
}

// The largest products of bytes, where an instruction that saturates would show.
TEST_P(GemmInt8, ExtremesDoNotSaturate) {
  ThreadPool pool(1);
  const std::vector<uint8_t> a(64 * 8, 0x80), b(64 * 32, 0x80);  // -128
  const PackedBytes left(pool, GemmSide::left, 8, 64, {a.data(), true, 64}, {}, *GetParam());
  const PackedBytes right(pool, GemmSide::right, 32, 64, {b.data(), true, 32}, {}, *GetParam());
  std::vector<int32_t> c(8 * 32);
  multiply_panels(nullptr, left.panels(), right.panels(), nullptr, c.data(), 32);
  for (int32_t sum : c) EXPECT_EQ(sum, 64 * 128 * 128);
}

INSTANTIATE_TEST_SUITE_P(Kernels, GemmInt8, testing::ValuesIn(available_int8_kernels()),
                         [](const auto& kernels) { return std::string(kernels.param->name); });

TEST(GemmInt8Dispatch, FollowsTheIsa) {
  const ScopedIsa forced(Isa::portable);
  EXPECT_STREQ(int8_kernels().name, "portable");
}

// Rows that begin at a cache line, or do not, and zero points that are added to rows, or not.
TEST(GemmInt8Unpacked, MatchesPacked) {
  ThreadPool pool(2);
  const int64_t shapes[][3] = {{33, 130, 300}, {70, 97, 128}, {64, 64, 64}, {16, 33, 192}, {2, 40, 64}};
  for (const auto& [m, n, k] : shapes) {
    for (const int offset : {0, 16}) {
      for (const int32_t zero : {0, 7}) {
        const AlignedBuffer memory(static_cast<size_t>(m * k + offset));
        const auto from = bytes(m * k, 3), b = bytes(k * n, 4);
        std::ranges::copy(from, memory.as<uint8_t>() + offset);
        const int32_t left_zero = 121;
        const ByteMatrix left{memory.as<uint8_t>() + offset, false, k}, right{b.data(), true, n};
        const PackedBytes packed(pool, GemmSide::right, n, k, right, {&zero});
        std::vector<int32_t> c(static_cast<size_t>(m * n)), d(c.size()), expected(c.size());
        gemm_int8(&pool, m, n, k, left, {&left_zero}, right, {&zero}, nullptr, stored_sums(c.data(), n));
        gemm_int8(&pool, m, left, {&left_zero}, packed, nullptr, stored_sums(d.data(), n));
        const ScopedIsa forced(Isa::portable);
        gemm_int8(&pool, m, n, k, left, {&left_zero}, right, {&zero}, nullptr, stored_sums(expected.data(), n));
        EXPECT_EQ(c, expected) << m << " " << n << " " << k << " at " << offset;
        EXPECT_EQ(d, expected) << m << " " << n << " " << k << " at " << offset;
      }
    }
  }
}

// Kernels may make codes by themselves: they are those of all sums, requantized.
TEST(GemmInt8Codes, AreThoseOfSums) {
  ThreadPool one(1), pool(2);
  const int64_t shapes[][3] = {{33, 130, 300}, {70, 97, 128}, {64, 64, 64},    {17, 33, 192}, {2, 40, 64},
                               {1, 64, 70},    {96, 32, 576}, {32, 260, 1024}, {80, 330, 64}};
  for (const auto& [m, n, k] : shapes) {
    for (const bool is_signed : {false, true}) {
      for (const int32_t zero : {0, 7}) {
        const AlignedBuffer a(static_cast<size_t>(m * k));
        std::ranges::copy(bytes(m * k, 3), a.as<uint8_t>());
        const auto b = bytes(k * n, 4);
        const int32_t left_zero = 121;
        std::vector<int32_t> bias(static_cast<size_t>(n));
        std::vector<float> scales;
        for (int64_t i = 0; i < n; ++i) {
          bias[static_cast<size_t>(i)] = static_cast<int32_t>(i * 3001 % 20011) - 10000;
          // Some that leave nothing but the limits.
          scales.push_back(zero != 0 && i % 5 == 1 ? 1e7f : 0.0001f * static_cast<float>(1 + i % 7));
        }
        const ByteMatrix left{a.as<uint8_t>(), false, k}, right{b.data(), true, n};
        const PackedBytes packed(pool, GemmSide::right, n, k, right, {&zero});
        std::vector<uint8_t> y(static_cast<size_t>(m * (n + 3)), 99), expected = y;
        const CodesOfSums codes{scales.data(), is_signed, is_signed ? -9 : 77, y.data(), n + 3};
        gemm_int8(&pool, m, left, {&left_zero}, packed, bias.data(), codes);
        CodesOfSums one_by_one = codes;
        one_by_one.y = expected.data();
        gemm_int8(&pool, m, left, {&left_zero}, packed, bias.data(),
                  [&](const SumsBlock& block) { one_by_one(block); });
        EXPECT_EQ(y, expected) << m << " " << n << " " << k;
        std::ranges::fill(y, 99);
        gemm_int8(&one, m, left, {&left_zero}, packed, bias.data(), codes);
        EXPECT_EQ(y, expected) << m << " " << n << " " << k << ", one thread";
      }
    }
  }
}

}  // namespace
}  // namespace tenon::kernels

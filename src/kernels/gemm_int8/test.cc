#include "kernels/gemm_int8/gemm_int8.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <limits>
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
  const int64_t shapes[][3] = {{1, 1, 1},    {2, 7, 3},    {3, 8, 8},    {8, 9, 16},    {9, 33, 17},  {5, 3, 0},
                               {17, 64, 40}, {70, 65, 66}, {1, 40, 100}, {34, 97, 130}, {27, 150, 35}};
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

// Codes of one product, as kernels may make them by themselves, are those of all its sums, requantized.
struct CodesCase {
  int64_t m, n, k;
  int32_t right_zero;
  bool is_signed;
};

void check_codes(const CodesCase& t, const std::vector<uint8_t>& a, const std::vector<uint8_t>& b,
                 const std::vector<int32_t>& bias, const std::vector<float>& scales, AddedCodes added = {}) {
  ThreadPool one(1), pool(2);
  const AlignedBuffer memory(a.size());
  std::ranges::copy(a, memory.as<uint8_t>());
  const int32_t left_zero = 121;
  const ByteMatrix left{memory.as<uint8_t>(), false, t.k}, right{b.data(), true, t.n};
  const PackedBytes packed(pool, GemmSide::right, t.n, t.k, right, {&t.right_zero});
  std::vector<uint8_t> y(static_cast<size_t>(t.m * (t.n + 3)), 99), expected = y;
  const CodesOfSums codes{scales.data(), t.is_signed, t.is_signed ? -9 : 77, y.data(), t.n + 3, added};
  gemm_int8(&pool, t.m, left, {&left_zero}, packed, bias.data(), codes);
  const auto store = [&](const SumsBlock& block, auto zero, auto* codes_of_rows) {
    const SumRows sums{block.sums, block.ld, block.rows, block.columns};
    const Scales own_scales{scales.data() + block.column, 1};
    auto* to = codes_of_rows + block.row * codes.ldy + block.column;
    if (!added.addends) return requantize_rows(sums, own_scales, zero, to, codes.ldy);
    requantize_and_add_rows(sums, own_scales, {added.addends + block.column, added.factor, added.code_zero}, zero, to,
                            codes.ldy);
  };
  gemm_int8(&pool, t.m, left, {&left_zero}, packed, bias.data(), [&](const SumsBlock& block) {
    if (t.is_signed)
      store(block, int8_t{-9}, reinterpret_cast<int8_t*>(expected.data()));
    else
      store(block, uint8_t{77}, expected.data());
  });
  EXPECT_EQ(y, expected) << t.m << " " << t.n << " " << t.k << " " << t.right_zero << " " << t.is_signed;
  std::ranges::fill(y, 99);
  gemm_int8(&one, t.m, left, {&left_zero}, packed, bias.data(), codes);
  EXPECT_EQ(y, expected) << t.m << " " << t.n << " " << t.k << " " << t.right_zero << " " << t.is_signed
                         << ", one thread";
}

std::vector<int32_t> small_bias(int64_t n) {
  std::vector<int32_t> result;
  for (int64_t i = 0; i < n; ++i) result.push_back(static_cast<int32_t>(i * 3001 % 20011) - 10000);
  return result;
}

TEST(GemmInt8Codes, AreThoseOfSums) {
  const int64_t shapes[][3] = {{33, 130, 300}, {70, 97, 128},   {64, 64, 64}, {17, 33, 192},
                               {2, 40, 64},    {3, 9, 8},       {1, 64, 70},  {29, 8, 5},
                               {96, 32, 576},  {32, 260, 1024}, {13, 7, 0},   {80, 330, 64}};
  // Small ones, some that make numbers of more than 16 bits, and some that leave nothing but the limits.
  const float nan = std::numeric_limits<float>::quiet_NaN();
  for (const float every_fifth : {0.0001f, 0.1f, 1e7f, nan}) {
    for (const auto& [m, n, k] : shapes) {
      std::vector<float> scales, addends;
      for (int64_t i = 0; i < n; ++i) {
        scales.push_back(i % 5 == 1 ? every_fifth : 0.0001f * static_cast<float>(1 + i % 7));
        addends.push_back(i % 11 == 3 ? every_fifth : static_cast<float>(i % 13) * 7.3f - 40.0f);
      }
      for (const bool is_signed : {false, true}) {
        for (const int32_t zero : {0, 7})
          for (const AddedCodes& added : {AddedCodes{}, {addends.data(), 0.37f, is_signed ? 5 : 133}}) {
            check_codes({m, n, k, zero, is_signed}, bytes(m * k, 3), bytes(k * n, 4), small_bias(n), scales, added);
          }
      }
    }
  }
}

// The largest sums that some numbers of steps make, just below and above what floats have for whole numbers.
TEST(GemmInt8Codes, OfTheLargestSums) {
  constexpr int64_t m = 13, n = 16;
  for (int64_t k = 236; k <= 250; ++k) {
    for (const int left : {0, 255}) {
      for (const int right : {127, -128}) {
        const std::vector<uint8_t> a(static_cast<size_t>(m * k), static_cast<uint8_t>(left)),
            b(static_cast<size_t>(k * n), static_cast<uint8_t>(right));
        check_codes({m, n, k, 0, false}, a, b, std::vector<int32_t>(n), std::vector<float>(n, 0.00002f));
      }
    }
  }
}

TEST(GemmInt8Magnitudes, OfColumns) {
  ThreadPool pool(2);
  for (const Int8Kernels* kernels : available_int8_kernels()) {
    constexpr int64_t n = 19, k = 70;
    const auto b = bytes(k * n, 4);
    const auto zeros = zero_points(n, true);
    const PackedBytes packed(pool, GemmSide::right, n, k, {b.data(), true, n}, {zeros.data(), true}, *kernels);
    ASSERT_EQ(packed.panels().magnitudes != nullptr, kernels->codes_of_tiles != nullptr) << kernels->name;
    for (int64_t j = 0; packed.panels().magnitudes && j < n; ++j) {
      const int32_t zero = zeros[static_cast<size_t>(j)];
      int32_t sum = std::abs(zero) * static_cast<int32_t>(packed.panels().steps() - k);
      for (int64_t p = 0; p < k; ++p) sum += std::abs(value(b, p * n + j, true) - zero);
      EXPECT_EQ(packed.panels().magnitudes[j], sum) << kernels->name << " " << j;
    }
  }
}

}  // namespace
}  // namespace tenon::kernels

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "kernels/gemm_bf16/bf16.h"
#include "kernels/gemm_bf16/gemm_bf16.h"
#include "random_floats.h"

namespace tenon::kernels {
namespace {

TEST(Bf16, RoundsToNearestEven) {
  EXPECT_EQ(to_bf16(1.0f), 0x3f80);
  EXPECT_EQ(to_bf16(1.00390625f), 0x3f80) << "between two, the even one is below";
  EXPECT_EQ(to_bf16(1.01171875f), 0x3f82) << "between two, the even one is above";
  EXPECT_EQ(to_bf16(3.4e38f), 0x7f80) << "what is too large is infinite";
  EXPECT_EQ(to_bf16(-INFINITY), 0xff80);
  EXPECT_TRUE(std::isnan(from_bf16(to_bf16(std::bit_cast<float>(0x7f800001)))));
  EXPECT_EQ(from_bf16(0x4049), 3.140625f);
}

struct Sizes {
  int64_t m, n, k;
};

float rounded(float x) { return from_bf16(to_bf16(x)); }

class Bf16Gemm : public testing::TestWithParam<const Bf16Kernels*> {
 protected:
  // Against sums in double precision of what was rounded.
  void expect_product(const Sizes& s, bool transposed, bool with_epilogue) {
    const int64_t gap = 3, lda = s.k + gap, ldb = (transposed ? s.k : s.n) + gap, ldc = s.n + gap;
    const auto a = random_floats(s.m * lda, 1), b = random_floats((transposed ? s.n : s.k) * ldb, 2);
    const auto bias = random_floats(s.n, 3), residual = random_floats(s.m * ldc, 4);
    std::vector<float> c(static_cast<size_t>(s.m * ldc), 7.0f);
    GemmEpilogue epilogue;
    if (with_epilogue) {
      epilogue.alpha = 0.5f;
      epilogue.addend = bias.data();
      epilogue.addend_column_stride = 1;
      epilogue.beta = 2;
      epilogue.residual = residual.data();
      epilogue.lo = 0;
      epilogue.activation = [](const float* x, float* y, int64_t n) {
        for (int64_t i = 0; i < n; ++i) y[i] = x[i] + 1;
      };
    }
    ThreadPool pool(3);
    const PackedBf16Matrix packed(pool, s.k, s.n, {b.data(), ldb, transposed}, *GetParam());
    gemm_bf16(pool, s.m, {a.data(), lda}, packed, c.data(), ldc, epilogue);
    for (int64_t i = 0; i < s.m; ++i) {
      for (int64_t j = 0; j < s.n; ++j) {
        double sum = 0, size = 0;
        for (int64_t p = 0; p < s.k; ++p) {
          const double product = double{rounded(a[static_cast<size_t>(i * lda + p)])} *
                                 rounded(b[static_cast<size_t>(transposed ? j * ldb + p : p * ldb + j)]);
          sum += product;
          size += std::abs(product);
        }
        if (with_epilogue) {
          sum = 0.5 * sum + 2.0 * bias[static_cast<size_t>(j)] + residual[static_cast<size_t>(i * ldc + j)];
          sum = std::max(sum, 0.0) + 1;
        }
        ASSERT_NEAR(c[static_cast<size_t>(i * ldc + j)], sum, 1e-6 * (size + 4))
            << s.m << "x" << s.k << " by " << s.k << "x" << s.n << " at " << i << ", " << j;
      }
      for (int64_t j = s.n; j < ldc; ++j) ASSERT_EQ(c[static_cast<size_t>(i * ldc + j)], 7.0f);
    }
  }
};

TEST_P(Bf16Gemm, MatchesReference) {
  for (const Sizes& s : {Sizes{1, 1, 1}, Sizes{3, 5, 7}, Sizes{16, 32, 32}, Sizes{33, 31, 65}, Sizes{17, 70, 100},
                         Sizes{64, 48, 520}, Sizes{9, 40, 1100}}) {
    for (bool transposed : {false, true}) {
      for (bool with_epilogue : {false, true}) expect_product(s, transposed, with_epilogue);
    }
  }
}

// More rows than are rounded at once.
TEST_P(Bf16Gemm, ManyRows) { expect_product({1300, 3, 1024}, true, true); }

TEST_P(Bf16Gemm, NumbersThatAreNotFiniteStayWhereTheyAre) {
  const int64_t m = 20, n = 10, k = 40;
  std::vector<float> a(m * k, 1.0f), b(k * n, 1.0f), c(m * n);
  a[3 * k + 5] = NAN;
  a[17 * k + 39] = INFINITY;
  ThreadPool pool(1);
  gemm_bf16(pool, m, {a.data(), k}, PackedBf16Matrix(pool, k, n, {b.data(), n}, *GetParam()), c.data(), n);
  for (int64_t i = 0; i < m; ++i) {
    for (int64_t j = 0; j < n; ++j) {
      const float x = c[static_cast<size_t>(i * n + j)];
      if (i == 3)
        EXPECT_TRUE(std::isnan(x));
      else
        EXPECT_EQ(x, i == 17 ? INFINITY : 40.0f);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Kernels, Bf16Gemm, testing::ValuesIn(available_bf16_kernels()),
                         [](const auto& kernels) { return std::string(kernels.param->name); });

}  // namespace
}  // namespace tenon::kernels

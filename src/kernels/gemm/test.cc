#include "kernels/gemm/gemm.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <random>
#include <vector>

#include "random_floats.h"

namespace tenon::kernels {
namespace {

void square(const float* x, float* y, int64_t n) {
  for (int64_t i = 0; i < n; ++i) y[i] = x[i] * x[i];
}

struct Problem {
  int64_t m, n, k;
  bool a_transposed = false, b_transposed = false;
  int64_t slack = 3;  // added to every leading dimension
  std::vector<float> a = random_floats((a_transposed ? k : m) * a_ld(), 1);
  std::vector<float> b = random_floats((b_transposed ? n : k) * b_ld(), 2);
  std::vector<float> addend = random_floats(m * ldc() + 1, 3);
  std::vector<float> residual = random_floats(m * ldc(), 4);

  int64_t a_ld() const { return (a_transposed ? m : k) + slack; }
  int64_t b_ld() const { return (b_transposed ? k : n) + slack; }
  int64_t ldc() const { return n + slack; }
  GemmMatrix left() const { return {a.data(), a_ld(), a_transposed}; }
  GemmMatrix right() const { return {b.data(), b_ld(), b_transposed}; }

  double reference(int64_t i, int64_t j, const GemmEpilogue& e) const {
    double sum = 0;
    for (int64_t p = 0; p < k; ++p) {
      sum += static_cast<double>(a[static_cast<size_t>(a_transposed ? p * a_ld() + i : i * a_ld() + p)]) *
             b[static_cast<size_t>(b_transposed ? j * b_ld() + p : p * b_ld() + j)];
    }
    sum *= e.alpha;
    if (e.addend) sum += e.beta * addend[static_cast<size_t>(i * e.addend_row_stride + j * e.addend_column_stride)];
    if (e.residual) sum += residual[static_cast<size_t>(i * ldc() + j)];
    const double clamped = std::min<double>(std::max<double>(sum, e.lo), e.hi);
    return e.activation ? clamped * clamped : clamped;
  }

  void expect(const std::vector<float>& c, const GemmEpilogue& e, const char* what) const {
    const double tolerance = 1e-6 * (static_cast<double>(k) + 8) * (e.activation ? 2 + std::sqrt(k) : 1);
    for (int64_t i = 0; i < m; ++i) {
      for (int64_t j = 0; j < n; ++j) {
        ASSERT_NEAR(c[static_cast<size_t>(i * ldc() + j)], reference(i, j, e), tolerance)
            << what << " " << m << "x" << n << "x" << k << " at " << i << "," << j;
      }
      ASSERT_EQ(c[static_cast<size_t>(i * ldc() + n)], 77.0f) << "wrote past the row";
    }
  }
  std::vector<float> output() const { return std::vector<float>(static_cast<size_t>(m * ldc()), 77.0f); }
};

std::vector<GemmEpilogue> epilogues(const Problem& p) {
  const float infinity = std::numeric_limits<float>::infinity();
  return {
      {},
      {2.5f, 1, p.addend.data(), 0, 1, 0, infinity},                // row bias and Relu
      {1, -1, p.addend.data(), 1, 0, -0.5f, 0.5f},                  // column bias and Clip
      {0.5f, 3, p.addend.data(), p.ldc(), 1, -infinity, infinity},  // full
      {1, 1, p.addend.data(), 0, 0, -infinity, infinity},           // scalar
      {1, 1, p.addend.data(), 0, 1, -0.2f, infinity, p.residual.data()},
      {1, 1, nullptr, 0, 0, -infinity, 0.9f, p.residual.data(), square},
      {2, 1, nullptr, 3, 5, 0, infinity},  // no addend, whatever its strides
  };
}

class Gemm : public testing::TestWithParam<Isa> {};

TEST_P(Gemm, MatchesReference) {
  const ScopedIsa forced(GetParam());
  ASSERT_EQ(gemm_isa(), GetParam());
  ThreadPool pool(3);
  const int64_t shapes[][3] = {{1, 1, 1},      {1, 37, 19},    {29, 1, 33},   {2, 3, 4},     {8, 12, 16},
                               {7, 11, 5},     {14, 32, 7},    {17, 33, 65},  {5, 600, 9},   {64, 64, 0},
                               {33, 50, 700},  {130, 70, 513}, {3, 25, 1000}, {1, 1200, 50}, {700, 1, 90},
                               {100, 13, 40},  {60, 30, 1700}, {1, 90, 1700}, {40, 64, 33},  {11, 20, 6},
                               {30, 40, 1021},  // rows of the left side a page apart
                               {24, 16, 3},    {29, 20, 4},    {61, 76, 50},  {36, 28, 13},  {27, 56, 8}};
  for (const auto& [m, n, k] : shapes) {
    for (int transposition = 0; transposition < 4; ++transposition) {
      const Problem p{m, n, k, (transposition & 1) != 0, (transposition & 2) != 0};
      for (const GemmEpilogue& e : epilogues(p)) {
        auto c = p.output();
        gemm(pool, m, n, k, p.left(), p.right(), c.data(), p.ldc(), e);
        p.expect(c, e, "plain");
        c = p.output();
        gemm(pool, m, p.left(), PackedMatrix(pool, GemmSide::right, k, n, p.right()), c.data(), p.ldc(), e);
        p.expect(c, e, "packed right");
        c = p.output();
        gemm(pool, n, PackedMatrix(pool, GemmSide::left, m, k, p.left()), p.right(), c.data(), p.ldc(), e);
        p.expect(c, e, "packed left");
      }
    }
  }
}

TEST_P(Gemm, HasTheSameBitsForAnyNumberOfThreads) {
  const ScopedIsa forced(GetParam());
  ThreadPool one(1), many(5);
  for (const auto& [m, n, k] : {std::array<int64_t, 3>{1, 700, 900},
                                {61, 95, 1700},
                                {300, 90, 500},
                                {140, 500, 1700},
                                {999, 64, 64},
                                {15, 95, 900},
                                {16, 70, 1700}}) {
    const Problem p{m, n, k};
    GemmEpilogue e{2, 3, p.addend.data(), 1, 0, -0.5f, 0.5f};
    if (n == 500) e.activation = square;
    const PackedMatrix left(one, GemmSide::left, m, k, p.left()), right(one, GemmSide::right, k, n, p.right());
    const auto products = [&](ThreadPool& pool) {
      std::vector<std::vector<float>> c(3, p.output());
      gemm(pool, m, n, k, p.left(), p.right(), c[0].data(), p.ldc(), e);
      gemm(pool, m, p.left(), right, c[1].data(), p.ldc(), e);
      gemm(pool, n, left, p.right(), c[2].data(), p.ldc(), e);
      return c;
    };
    EXPECT_EQ(products(one), products(many)) << m << "x" << n << "x" << k;
  }
}

TEST_P(Gemm, RowsMayLieWholePagesApart) {
  const ScopedIsa forced(GetParam());
  ThreadPool one(1), many(3);
  const int64_t apart = 1024;
  for (const auto& [m, n, k] : {std::array<int64_t, 3>{20, 30, 40}, {300, 600, 1000}, {61, 95, 1024}, {28, 7, 1001}}) {
    const Problem p{m, n, k};
    std::vector<float> a(static_cast<size_t>(m * apart), std::nanf(""));
    for (int64_t i = 0; i < m; ++i) std::copy_n(p.left().data + i * p.left().ld, k, a.data() + i * apart);
    auto expected = p.output(), c = p.output(), shared = p.output();
    gemm(one, m, n, k, p.left(), p.right(), expected.data(), p.ldc());
    gemm(one, m, n, k, {a.data(), apart}, p.right(), c.data(), p.ldc());
    gemm(many, m, n, k, {a.data(), apart}, p.right(), shared.data(), p.ldc());
    EXPECT_EQ(c, expected) << m << "x" << n << "x" << k;
    EXPECT_EQ(shared, expected) << m << "x" << n << "x" << k;
  }
}

TEST_P(Gemm, BackwardsIsTheSame) {
  const ScopedIsa forced(GetParam());
  ThreadPool pool(1);
  for (int64_t n : {5, 12, 64, 250}) {
    const Problem p{1, n, 900};
    const PackedMatrix right(pool, GemmSide::right, p.k, n, p.right());
    auto forwards = p.output(), backwards = p.output();
    gemm(pool, 1, p.left(), right, forwards.data(), p.ldc());
    gemm(pool, 1, p.left(), right, backwards.data(), p.ldc(), {}, true);
    EXPECT_EQ(forwards, backwards) << n;
  }
}

TEST_P(Gemm, SomeColumnsAreTheSame) {
  const ScopedIsa forced(GetParam());
  ThreadPool pool(1);
  const int64_t width = gemm_panel_columns(), n = 5 * width + 3;
  for (const auto& [m, k] : {std::array<int64_t, 2>{1, 900}, {1, 1700}, {7, 300}, {40, 900}}) {
    const Problem p{m, n, k};
    const PackedMatrix right(pool, GemmSide::right, k, n, p.right());
    GemmEpilogue e{2, 3, p.addend.data(), p.ldc(), 1};
    auto whole = p.output(), parts = p.output();
    gemm(pool, m, p.left(), right, whole.data(), p.ldc(), e);
    for (const auto& [first, last] : {std::array<int64_t, 2>{3 * width, n}, {0, width}, {width, 3 * width}}) {
      e.addend = p.addend.data() + first;
      gemm_columns(m, p.left(), right, first, last, parts.data() + first, p.ldc(), e);
    }
    EXPECT_EQ(parts, whole) << m << " " << k;
  }
}

TEST_P(Gemm, AddsToItsOutputInPlace) {
  const ScopedIsa forced(GetParam());
  ThreadPool pool(2);
  for (const auto& [m, n, k] : {std::array<int64_t, 3>{21, 35, 5}, {21, 35, 900}, {51, 36, 25}}) {
    const Problem p{m, n, k};
    auto c = p.addend;
    for (int64_t i = 0; i < p.m; ++i) c[static_cast<size_t>(i * p.ldc() + p.n)] = 77.0f;
    const GemmEpilogue in_place{2, 0.5f, c.data(), p.ldc(), 1};
    gemm(pool, p.m, p.n, k, p.left(), p.right(), c.data(), p.ldc(), in_place);
    GemmEpilogue expected = in_place;
    expected.addend = p.addend.data();
    p.expect(c, expected, "in place");
  }
}

TEST_P(Gemm, BatchMatchesSingle) {
  const ScopedIsa forced(GetParam());
  ThreadPool pool(3);
  for (int64_t count : {0, 1, 2, 40}) {
    const int64_t m = 19, n = 23, k = 31;
    const auto a = random_floats(m * k * (count + 1), 4), b = random_floats(n * k * (count + 1), 5);
    std::vector<float> c(static_cast<size_t>(m * n * (count + 1))), expected(c.size());
    gemm_batch(pool, count, m, n, k, {nullptr, k}, {nullptr, k, true}, n, {}, [&](int64_t i) {
      return GemmBatchItem{a.data() + i * m * k, b.data() + i * n * k, c.data() + i * m * n};
    });
    for (int64_t i = 0; i < count; ++i) {
      gemm(pool, m, n, k, {a.data() + i * m * k, k}, {b.data() + i * n * k, k, true}, expected.data() + i * m * n, n);
    }
    EXPECT_EQ(c, expected);
  }
}

TEST_P(Gemm, NaNSurvivesTheActivation) {
  const ScopedIsa forced(GetParam());
  ThreadPool pool(1);
  const float nan = std::nanf("");
  for (int64_t n : {1, 12, 13, 64}) {
    std::vector<float> a(4, 1.0f), b(static_cast<size_t>(2 * n), nan), c(static_cast<size_t>(2 * n));
    gemm(pool, 2, n, 2, {a.data(), 2}, {b.data(), n}, c.data(), n, {1, 1, nullptr, 0, 0, 0, 6});
    for (float value : c) EXPECT_TRUE(std::isnan(value));
  }
}

TEST(GemmLarge, BlocksOfEveryDimension) {
  ThreadPool pool(2);
  const Problem p{90, 5600, 401};
  auto c = p.output();
  gemm(pool, p.m, p.n, p.k, p.left(), p.right(), c.data(), p.ldc());
  p.expect(c, {}, "wide");
  // More rows than are packed at once.
  const Problem q{11000, 40, 401};
  c = q.output();
  gemm(pool, q.m, q.n, q.k, q.left(), q.right(), c.data(), q.ldc());
  q.expect(c, {}, "tall");
  ThreadPool one(1);
  c = q.output();
  gemm(one, q.m, q.n, q.k, q.left(), q.right(), c.data(), q.ldc());
  q.expect(c, {}, "tall, one thread");
}

INSTANTIATE_TEST_SUITE_P(Isas, Gemm, testing::ValuesIn(available_isas(cpu_features())),
                         [](const auto& isa) { return std::string(isa_name(isa.param)); });

}  // namespace
}  // namespace tenon::kernels

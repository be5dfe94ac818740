#include "kernels/gemm_any/gemm_any.h"

#include <gtest/gtest.h>

#include <vector>

#include "kernels/gemm_any/tile.h"

namespace tenon::kernels {
namespace {

template <class T>
class GemmAny : public testing::Test {};
using Types = testing::Types<double, int32_t, uint32_t, int64_t, uint64_t>;
TYPED_TEST_SUITE(GemmAny, Types);

template <class T>
void expect_product(int64_t m, int64_t n, int64_t k, bool at, bool bt) {
  ThreadPool pool(2);
  std::vector<T> a(static_cast<size_t>(m * k)), b(static_cast<size_t>(k * n)), c(static_cast<size_t>(m * n), T{9});
  for (size_t i = 0; i < a.size(); ++i) a[i] = static_cast<T>(static_cast<int64_t>(i * 37 % 101) - 50);
  for (size_t i = 0; i < b.size(); ++i) b[i] = static_cast<T>(static_cast<int64_t>(i * 53 % 97) - 40);
  gemm_any<T>(pool, m, n, k, {a.data(), at ? m : k, at}, {b.data(), bt ? k : n, bt}, c.data(), n);
  for (int64_t i = 0; i < m; ++i) {
    for (int64_t j = 0; j < n; ++j) {
      T sum{};
      for (int64_t p = 0; p < k; ++p)
        sum += a[static_cast<size_t>(at ? p * m + i : i * k + p)] * b[static_cast<size_t>(bt ? j * k + p : p * n + j)];
      ASSERT_EQ(c[static_cast<size_t>(i * n + j)], sum) << m << " " << n << " " << k;
    }
  }
}

TYPED_TEST(GemmAny, MatchesReference) {
  const int64_t shapes[][3] = {{1, 1, 1},    {3, 5, 7},     {4, 16, 8},     {9, 33, 20},  {5, 3, 0},
                               {70, 65, 66}, {25, 40, 600}, {200, 17, 257}, {12, 300, 40}};
  for (const Isa isa : available_isas(cpu_features())) {
    const ScopedIsa scope(isa);
    ASSERT_EQ(gemm_any_kernels().isa, isa);
    for (const auto& [m, n, k] : shapes)
      for (const bool at : {false, true})
        for (const bool bt : {false, true}) expect_product<TypeParam>(m, n, k, at, bt);
  }
}

TEST(GemmAnyInteger, WrapsAround) {
  ThreadPool pool(1);
  const int32_t a = 1 << 20, b = 1 << 12;
  int32_t c = 1;
  gemm_any<int32_t>(pool, 1, 1, 1, {&a, 1}, {&b, 1}, &c, 1);
  EXPECT_EQ(c, 0);
}

}  // namespace
}  // namespace tenon::kernels

#include <algorithm>

#include "op_test.h"

namespace tenon {
namespace {

TEST(TopK, Orders) {
  OpTest("TopK")
      .input<float>({2, 3}, {1, 3, 2, 6, 4, 5})
      .input<int64_t>({1}, {2})
      .expect<float>({2, 2}, {3, 2, 6, 5})
      .expect<int64_t>({2, 2}, {1, 2, 0, 2})
      .run();
  OpTest("TopK")
      .attribute("largest", 0)
      .attribute("axis", 0)
      .input<int32_t>({3, 1}, {5, 5, -1})
      .input<int64_t>({1}, {2})
      .expect<int32_t>({2, 1}, {-1, 5})
      .expect<int64_t>({2, 1}, {2, 0})
      .run();
  OpTest("TopK")
      .input<float>({4}, {1, NAN, INFINITY, -0.0f})
      .input<int64_t>({1}, {4})
      .expect<float>({4}, {NAN, INFINITY, 1, -0.0f})
      .expect<int64_t>({4}, {1, 2, 0, 3})
      .run();
  OpTest("TopK")
      .input<uint64_t>({2}, {1, UINT64_MAX})
      .input<int64_t>({1}, {1})
      .expect<uint64_t>({1}, {UINT64_MAX})
      .expect<int64_t>({1}, {1})
      .run();
  OpTest("TopK")
      .input<float>({2}, {1, 2})
      .input<int64_t>({1}, {0})
      .expect<float>({0}, {})
      .expect<int64_t>({0}, {})
      .run();
  OpTest("TopK", 1).attribute("k", 1).input<float>({2}, {1, 2}).expect<float>({1}, {2}).expect<int64_t>({1}, {1}).run();
}

TEST(TopK, ManyOfMany) {
  int64_t n = 500;
  Tensor x(ElementType::float32, Shape{n}), best(ElementType::float32, Shape{100}),
      where(ElementType::int64, Shape{100});
  for (int64_t i = 0; i < n; ++i) x.mutable_data<float>()[static_cast<size_t>(i)] = static_cast<float>(i * 7 % n);
  for (size_t i = 0; i < 100; ++i) {
    best.mutable_data<float>()[i] = static_cast<float>(n - 1) - static_cast<float>(i);
    auto value = static_cast<int64_t>(static_cast<size_t>(n) - 1 - i);
    for (int64_t k = 0; k < n; ++k) {
      if (k * 7 % n == value) where.mutable_data<int64_t>()[i] = k;
    }
  }
  OpTest("TopK").input(x).input<int64_t>({1}, {100}).expect(best).expect(where).run();
}

// Most blocks of a long line have nothing that is better than what was found before; NaN is above all numbers.
TEST(TopK, FewOfMany) {
  constexpr size_t n = 5000;
  for (bool largest : {true, false}) {
    Tensor x(ElementType::float32, Shape{n});
    auto values = x.mutable_data<float>();
    for (size_t i = 0; i < n; ++i) values[i] = static_cast<float>(i * 7919 % 4999) - 2500;
    values[4000] = NAN;
    values[4001] = largest ? 8000.0f : -8000.0f;
    values[4500] = largest ? 9000.0f : -9000.0f;
    values[4501] = values[4500];
    std::vector<int64_t> order(n);
    for (size_t i = 0; i < n; ++i) order[i] = static_cast<int64_t>(i);
    std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
      const float p = values[static_cast<size_t>(a)], q = values[static_cast<size_t>(b)];
      return largest ? (p != p && q == q) || p > q : (q != q && p == p) || p < q;
    });
    for (int64_t k : {3, 100}) {
      Tensor best(ElementType::float32, Shape{k}), where(ElementType::int64, Shape{k});
      for (size_t i = 0; i < static_cast<size_t>(k); ++i) {
        where.mutable_data<int64_t>()[i] = order[i];
        best.mutable_data<float>()[i] = values[static_cast<size_t>(order[i])];
      }
      OpTest("TopK")
          .attribute("largest", largest ? 1 : 0)
          .input(x)
          .input<int64_t>({1}, {k})
          .expect(best)
          .expect(where)
          .run();
    }
  }
}

TEST(TopK, Errors) {
  EXPECT_NE(OpTest("TopK")
                .input<float>({2}, {1, 2})
                .input<int64_t>({1}, {3})
                .expect<float>({1}, {0})
                .expect<int64_t>({1}, {0})
                .error()
                .find("K is 3, axis 0 has size 2"),
            std::string::npos);
}

TEST(TopK, TooManyNumbers) {
  Tensor k(ElementType::int64, Shape{100});
  std::ranges::fill(k.mutable_data<int64_t>(), 1000);
  std::string error =
      OpTest("TopK").input<float>({2}, {1, 2}).input(k).expect<float>({1}, {0}).expect<int64_t>({1}, {0}).error();
  EXPECT_TRUE(error.starts_with("shape-mismatch in TopK 'tested' (node 0)")) << error;
}

}  // namespace
}  // namespace tenon

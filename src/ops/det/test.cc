#include <algorithm>

#include "op_test.h"

namespace tenon {
namespace {

TEST(Det, Matrices) {
  OpTest("Det").input<float>({2, 2}, {0, 2, 3, 4}).expect<float>({}, {-6}).run();
  OpTest("Det", 11).input<double>({2, 2, 2}, {1, 2, 3, 4, 1, 2, 2, 4}).expect<double>({2}, {-2, 0}).run();
  OpTest("Det").input<float16>({1, 1}, {float16(3)}).expect<float16>({}, {float16(3)}).run();
  OpTest("Det").input<float>({0, 0}, {}).expect<float>({}, {1}).run();
}

// A product of triangles has the product of their diagonals.
template <typename T>
void expect_product_of_triangles(int64_t n, double tolerance) {
  Tensor x(element_type_of<T>, Shape{n, n}), y(element_type_of<T>, Shape{});
  double expected = 1;
  for (int64_t r = 0; r < n; ++r) {
    expected *= 1 + 0.03 * static_cast<double>(r % 7);
    for (int64_t c = 0; c < n; ++c) {
      double sum = 0;
      for (int64_t k = 0; k <= std::min(r, c); ++k) {
        const double lower = r == k ? 1 : 0.01 * static_cast<double>((r * 5 + k) % 11);
        const double upper =
            c == k ? 1 + 0.03 * static_cast<double>(k % 7) : 0.02 * static_cast<double>((k * 3 + c) % 5);
        sum += lower * upper;
      }
      x.mutable_data<T>()[static_cast<size_t>(r * n + c)] = static_cast<T>(sum);
    }
  }
  y.mutable_data<T>()[0] = static_cast<T>(expected);
  OpTest("Det").input(x).expect(y).tolerance(tolerance, 0).run();
}

TEST(Det, ProductsOfTriangles) {
  for (int64_t n : {3, 5, 8, 13, 31, 64}) {
    expect_product_of_triangles<double>(n, 1e-12);
    expect_product_of_triangles<float>(n, 1e-5);
  }
}

}  // namespace
}  // namespace tenon

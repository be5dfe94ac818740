#include <fmt/core.h>

#include <algorithm>

#include "base/cpu_features.h"
#include "op_test.h"

namespace tenon {
namespace {

TEST(Gather, Axes) {
  OpTest("Gather")
      .input<float>({3, 2}, {1, 2, 3, 4, 5, 6})
      .input<int64_t>({2}, {2, 0})
      .expect<float>({2, 2}, {5, 6, 1, 2})
      .run();
  OpTest("Gather")
      .attribute("axis", 1)
      .input<float>({2, 2}, {1, 2, 3, 4})
      .input<int32_t>({1, 3}, {-1, 0, 1})
      .expect<float>({2, 1, 3}, {2, 1, 2, 4, 3, 4})
      .run();
  OpTest("Gather").input<std::string>({2}, {"a", "b"}).input<int64_t>({}, {1}).expect<std::string>({}, {"b"}).run();
  OpTest("Gather", 1)
      .input<std::complex<double>>({2}, {1, 2})
      .input<int64_t>({2}, {1, 0})
      .expect<std::complex<double>>({2}, {2, 1})
      .run();
  OpTest("Gather").input<float>({2, 0}, {}).input<int64_t>({1}, {1}).expect<float>({1, 0}, {}).run();
}

void expect_rows(int64_t rows, int64_t n, int64_t count) {
  Tensor x(ElementType::float32, {rows, n}), picks(ElementType::int64, {count});
  Tensor y(ElementType::float32, {count, n});
  for (int64_t i = 0; i < rows * n; ++i) x.mutable_data<float>()[static_cast<size_t>(i)] = static_cast<float>(i);
  for (int64_t i = 0; i < count; ++i) {
    const int64_t row = i * 29 * (rows / 41) % rows;
    picks.mutable_data<int64_t>()[static_cast<size_t>(i)] = i % 2 ? row : row - rows;
    for (int64_t k = 0; k < n; ++k)
      y.mutable_data<float>()[static_cast<size_t>(i * n + k)] = static_cast<float>(row * n + k);
  }
  OpTest("Gather").input(x).input(picks).expect(y).run();
}

// Blocks of whole cache lines, of parts of them, and longer than what is fetched ahead.
TEST(Gather, BlocksOfManySizes) {
  for (int64_t n : {15, 16, 17, 33, 64, 129, 1000, 4500}) expect_rows(41, n, 300);
}

// Rows of tables that no cache holds: those of many whole lines are copied in turns, with and without a shorter last
// piece and a smaller last group.
TEST(Gather, RowsOfLargeTables) {
  for (int64_t n : {256, 272, 1024, 1025})
    for (int64_t count : {3, 8, 300}) expect_rows(9 * cpu_features().l2_bytes / (n * 4), n, count);
}

TEST(Gather, Errors) {
  EXPECT_EQ(
      OpTest("Gather").attribute("axis", 1).input<float>({1, 5}, {1, 2, 3, 4, 5}).input<int64_t>({2}, {0, 7}).error(),
      "invalid-value in Gather 'tested' (node 0): index 7 is out of range for size 5 on axis 1");
  EXPECT_NE(OpTest("Gather")
                .input<float>({0, 1}, {})
                .input<int64_t>({1}, {0})
                .error()
                .find("index 0 is out of range for size 0 on axis 0"),
            std::string::npos);
}

TEST(GatherElements, Axes) {
  OpTest("GatherElements")
      .attribute("axis", 1)
      .input<float>({2, 2}, {1, 2, 3, 4})
      .input<int64_t>({2, 2}, {0, 0, 1, 0})
      .expect<float>({2, 2}, {1, 1, 4, 3})
      .run();
  OpTest("GatherElements", 11)
      .input<float>({3, 2}, {1, 2, 3, 4, 5, 6})
      .input<int32_t>({1, 2}, {-1, 1})
      .expect<float>({1, 2}, {5, 4})
      .run();
  EXPECT_NE(OpTest("GatherElements")
                .input<float>({1, 2}, {1, 2})
                .input<int64_t>({1, 3}, {0, 0, 0})
                .error()
                .find("indices have size 3 on axis 1, data only 2"),
            std::string::npos);
}

// More indices than are worked on at once, and those that are wrong anywhere among them.
TEST(GatherElements, LongRows) {
  constexpr int64_t count = 1100, size = 9;
  Tensor x(ElementType::float32, {size}), y(ElementType::float32, {count});
  Tensor wide(ElementType::int64, {count}), narrow(ElementType::int32, {count});
  for (size_t i = 0; i < size; ++i) x.mutable_data<float>()[i] = static_cast<float>(i);
  for (size_t i = 0; i < count; ++i) {
    const auto index = static_cast<int32_t>(i * 7 % (2 * size)) - int32_t{size};
    wide.mutable_data<int64_t>()[i] = narrow.mutable_data<int32_t>()[i] = index;
    y.mutable_data<float>()[i] = static_cast<float>((index + size) % size);
  }
  OpTest("GatherElements").input(x).input(wide).expect(y).run();
  OpTest("GatherElements").input(x).input(narrow).expect(y).run();
  for (const int64_t wrong : {size, -size - 1, INT64_MAX, INT64_MIN}) {
    for (const size_t at : {size_t{0}, size_t{700}, size_t{count - 1}}) {
      Tensor indices(ElementType::int64, {count});
      std::ranges::copy(wide.data<int64_t>(), indices.mutable_data<int64_t>().begin());
      indices.mutable_data<int64_t>()[at] = wrong;
      EXPECT_EQ(
          OpTest("GatherElements").input(x).input(indices).error(),
          fmt::format("invalid-value in GatherElements 'tested' (node 0): index {} is out of range for size {} on "
                      "axis 0",
                      wrong, size));
    }
  }
}

TEST(GatherND, Depths) {
  OpTest("GatherND")
      .input<int32_t>({2, 2}, {0, 1, 2, 3})
      .input<int64_t>({2, 2}, {0, 0, 1, 1})
      .expect<int32_t>({2}, {0, 3})
      .run();
  OpTest("GatherND")
      .input<int32_t>({2, 2}, {0, 1, 2, 3})
      .input<int64_t>({2, 1}, {1, 0})
      .expect<int32_t>({2, 2}, {2, 3, 0, 1})
      .run();
  OpTest("GatherND", 12)
      .attribute("batch_dims", 1)
      .input<int32_t>({2, 2, 2}, {0, 1, 2, 3, 4, 5, 6, 7})
      .input<int64_t>({2, 1}, {1, 0})
      .expect<int32_t>({2, 2}, {2, 3, 4, 5})
      .run();
  OpTest("GatherND", 11)
      .input<std::string>({2}, {"a", "b"})
      .input<int64_t>({1, 1}, {-1})
      .expect<std::string>({1}, {"b"})
      .run();
  EXPECT_NE(OpTest("GatherND")
                .input<float>({2}, {1, 2})
                .input<int64_t>({1, 1}, {2})
                .error()
                .find("index 2 is out of range for size 2 on axis 0"),
            std::string::npos);
  EXPECT_NE(
      OpTest("GatherND").input<float>({2}, {1, 2}).input<int64_t>({1, 2}, {0, 0}).error().find("it must be 1 to 1"),
      std::string::npos);
}

}  // namespace
}  // namespace tenon

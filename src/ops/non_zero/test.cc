#include <algorithm>

#include "op_test.h"

namespace tenon {
namespace {

TEST(NonZero, Coordinates) {
  OpTest("NonZero").input<bool>({2, 2}, {true, false, true, true}).expect<int64_t>({2, 3}, {0, 1, 1, 0, 0, 1}).run();
  OpTest("NonZero").input<float>({3}, {-0.0f, 2, NAN}).expect<int64_t>({1, 2}, {1, 2}).run();
  OpTest("NonZero", 9).input<float>({}, {1}).expect<int64_t>({0, 1}, {}).run();
  OpTest("NonZero").input<std::string>({2}, {"", "a"}).expect<int64_t>({1, 1}, {1}).run();
}

TEST(NonZero, Rows) {
  // Rows of several blocks, on several axes.
  const int64_t shape[] = {2, 3, 600};
  Tensor x(ElementType::float32, Shape(shape));
  std::vector<int64_t> expected[3];
  size_t at = 0;
  for (int64_t i = 0; i < shape[0]; ++i) {
    for (int64_t j = 0; j < shape[1]; ++j) {
      for (int64_t k = 0; k < shape[2]; ++k, ++at) {
        const bool is_set = j != 1 && (k * 7 + i + j) % 3 != 0;
        x.mutable_data<float>()[at] = is_set ? 0.5f : 0.0f;
        if (!is_set) continue;
        expected[0].push_back(i);
        expected[1].push_back(j);
        expected[2].push_back(k);
      }
    }
  }
  Tensor y(ElementType::int64, Shape{3, std::ssize(expected[0])});
  auto to = y.mutable_data<int64_t>().begin();
  for (const auto& row : expected) to = std::ranges::copy(row, to).out;
  OpTest("NonZero").input(x).expect(y).run();
  OpTest("NonZero").input<float>({2, 0}, {}).expect<int64_t>({2, 0}, {}).run();
}

TEST(Compress, Axes) {
  OpTest("Compress")
      .attribute("axis", 1)
      .input<float>({2, 2}, {1, 2, 3, 4})
      .input<bool>({2}, {false, true})
      .expect<float>({2, 1}, {2, 4})
      .run();
  OpTest("Compress", 9)
      .input<std::string>({2, 2}, {"a", "b", "c", "d"})
      .input<bool>({3}, {true, false, true})
      .expect<std::string>({2}, {"a", "c"})
      .run();
  EXPECT_NE(OpTest("Compress")
                .input<float>({1}, {1})
                .input<bool>({2}, {false, true})
                .error()
                .find("the condition selects index 1, there are 1 elements"),
            std::string::npos);
}

}  // namespace
}  // namespace tenon

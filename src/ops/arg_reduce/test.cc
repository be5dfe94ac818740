#include <algorithm>

#include "op_test.h"

namespace tenon {
namespace {

TEST(ArgReduce, Axes) {
  const Tensor x({2, 3}, {1.0f, 3.0f, 3.0f, 6.0f, 0.0f, 0.0f});
  OpTest("ArgMax").input(x).expect<int64_t>({1, 3}, {1, 0, 0}).run();
  OpTest("ArgMax").input(x).attribute("axis", 1).expect<int64_t>({2, 1}, {1, 0}).run();
  OpTest("ArgMax")
      .input(x)
      .attribute("axis", -1)
      .attribute("keepdims", 0)
      .attribute("select_last_index", 1)
      .expect<int64_t>({2}, {2, 0})
      .run();
  OpTest("ArgMin").input(x).attribute("axis", 1).attribute("keepdims", 0).expect<int64_t>({2}, {0, 1}).run();
  OpTest("ArgMin")
      .input(x)
      .attribute("axis", 1)
      .attribute("keepdims", 0)
      .attribute("select_last_index", 1)
      .expect<int64_t>({2}, {0, 2})
      .run();
  OpTest("ArgMax").input<float>({}, {1}).expect<int64_t>({}, {0}).run();
  OpTest("ArgMax").input<float>({2, 0}, {}).expect<int64_t>({1, 0}, {}).run();
}

TEST(ArgReduce, Types) {
  OpTest("ArgMax").input<uint8_t>({2}, {1, 200}).expect<int64_t>({1}, {1}).run();
  OpTest("ArgMin").input<int64_t>({2}, {1, -200}).expect<int64_t>({1}, {1}).run();
  OpTest("ArgMax").input<float16>({2}, {float16(1), float16(2)}).expect<int64_t>({1}, {1}).run();
  OpTest("ArgMax").input<float>({3}, {1, NAN, 7}).expect<int64_t>({1}, {1}).run();
}

// Long rows are searched block by block, from both ends.
TEST(ArgReduce, LongRows) {
  for (int64_t n : {17, 600, 1000}) {
    for (int64_t at : {int64_t{0}, int64_t{15}, n / 2, n - 16, n - 1}) {
      Tensor x(ElementType::float32, Shape{n});
      auto values = x.mutable_data<float>();
      for (float value : {9.0f, NAN}) {
        std::ranges::fill(values, 1.0f);
        values[static_cast<size_t>(at)] = values[static_cast<size_t>(n / 2)] = value;
        const int64_t first = std::min(at, n / 2), last = std::max(at, n / 2);
        OpTest("ArgMax").input(x).expect<int64_t>({1}, {first}).run();
        OpTest("ArgMax").input(x).attribute("select_last_index", 1).expect<int64_t>({1}, {last}).run();
      }
    }
  }
}

TEST(ArgReduce, Errors) {
  EXPECT_EQ(OpTest("ArgMax").input<float>({0, 2}, {}).error(),
            "shape-mismatch in ArgMax 'tested' (node 0): axis 0 is empty, it has no largest or smallest element\n"
            "  input 0 'in0' is tensor(float) [0, 2], an input of the graph");
}

}  // namespace
}  // namespace tenon

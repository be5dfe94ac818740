#include "op_test.h"

namespace tenon {
namespace {

TEST(Expand, Shapes) {
  OpTest("Expand")
      .input<float>({2, 1}, {1, 2})
      .input<int64_t>({3}, {2, 1, 2})
      .expect<float>({2, 2, 2}, {1, 1, 2, 2, 1, 1, 2, 2})
      .run();
  OpTest("Expand").input<float>({2, 1}, {1, 2}).constant<int64_t>({1}, {1}).expect<float>({2, 1}, {1, 2}).run();
  OpTest("Expand", 8)
      .input<std::string>({}, {"a"})
      .constant<int64_t>({1}, {2})
      .expect<std::string>({2}, {"a", "a"})
      .run();
  OpTest("Expand").input<float>({1}, {1}).constant<int64_t>({2}, {0, 3}).expect<float>({0, 3}, {}).run();
  EXPECT_NE(OpTest("Expand")
                .input<float>({2}, {1, 2})
                .constant<int64_t>({1}, {3})
                .error()
                .find("cannot be broadcast: 2 against 3"),
            std::string::npos);
}

TEST(Tile, Repeats) {
  OpTest("Tile")
      .input<float>({2, 2}, {1, 2, 3, 4})
      .input<int64_t>({2}, {1, 2})
      .expect<float>({2, 4}, {1, 2, 1, 2, 3, 4, 3, 4})
      .run();
  OpTest("Tile", 6)
      .input<int8_t>({1, 2}, {1, 2})
      .input<int64_t>({2}, {2, 2})
      .expect<int8_t>({2, 4}, {1, 2, 1, 2, 1, 2, 1, 2})
      .run();
  OpTest("Tile").input<float>({2}, {1, 2}).input<int64_t>({1}, {0}).expect<float>({0}, {}).run();
  EXPECT_NE(OpTest("Tile")
                .input<float>({2}, {1, 2})
                .constant<int64_t>({1}, {-1})
                .error()
                .find("axis 0 cannot be repeated -1 times"),
            std::string::npos);
}

TEST(Tile, Version1RepeatsOneAxis) {
  OpTest("Tile", 1)
      .input<float>({2, 1}, {1, 2})
      .input<float>({}, {2})
      .input<float>({}, {1})
      .expect<float>({2, 2}, {1, 1, 2, 2})
      .run();
}

}  // namespace
}  // namespace tenon

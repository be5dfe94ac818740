#include "op_test.h"

namespace tenon {
namespace {

TEST(NonZero, Coordinates) {
  OpTest("NonZero").input<bool>({2, 2}, {true, false, true, true}).expect<int64_t>({2, 3}, {0, 1, 1, 0, 0, 1}).run();
  OpTest("NonZero").input<float>({3}, {-0.0f, 2, NAN}).expect<int64_t>({1, 2}, {1, 2}).run();
  OpTest("NonZero", 9).input<float>({}, {1}).expect<int64_t>({0, 1}, {}).run();
  OpTest("NonZero").input<std::string>({2}, {"", "a"}).expect<int64_t>({1, 1}, {1}).run();
}

TEST(Compress, Axes) {
  OpTest("Compress").attribute("axis", 1).input<float>({2, 2}, {1, 2, 3, 4}).input<bool>({2}, {false, true}).expect<float>({2, 1}, {2, 4}).run();
  OpTest("Compress", 9).input<std::string>({2, 2}, {"a", "b", "c", "d"}).input<bool>({3}, {true, false, true}).expect<std::string>({2}, {"a", "c"}).run();
  EXPECT_NE(OpTest("Compress").input<float>({1}, {1}).input<bool>({2}, {false, true}).error().find("the condition selects index 1, there are 1 elements"), std::string::npos);
}

}  // namespace
}  // namespace tenon

#include "op_test.h"

namespace tenon {
namespace {

TEST(Shape, StartAndEnd) {
  auto shape_of = [] { return OpTest("Shape"); };
  shape_of().input<float>({2, 1, 0}, {}).expect<int64_t>({3}, {2, 1, 0}).run();
  shape_of().input<float>({}, {1}).expect<int64_t>({0}, {}).run();
  shape_of().attribute("start", -1).input<float>({2, 1, 3}, {1, 2, 3, 4, 5, 6}).expect<int64_t>({1}, {3}).run();
  shape_of().attribute("end", -1).input<float>({2, 1, 3}, {1, 2, 3, 4, 5, 6}).expect<int64_t>({2}, {2, 1}).run();
  shape_of().attribute("start", 2).attribute("end", 1).input<float>({2, 1, 3}, {1, 2, 3, 4, 5, 6}).expect<int64_t>({0}, {}).run();
  shape_of().attribute("start", -10).attribute("end", 10).input<float>({2, 1}, {1, 2}).expect<int64_t>({2}, {2, 1}).run();
  OpTest("Shape", 1).input<std::string>({1}, {"a"}).expect<int64_t>({1}, {1}).run();
}

TEST(Size, Elements) {
  OpTest("Size").input<float>({2, 1, 3}, {1, 2, 3, 4, 5, 6}).expect<int64_t>({}, {6}).run();
  OpTest("Size", 1).input<bool>({}, {true}).expect<int64_t>({}, {1}).run();
}

}  // namespace
}  // namespace tenon

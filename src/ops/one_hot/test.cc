#include "op_test.h"

namespace tenon {
namespace {

TEST(OneHot, Axes) {
  OpTest("OneHot")
      .input<int64_t>({2}, {0, -1})
      .constant<int64_t>({}, {3})
      .input<float>({2}, {0, 1})
      .expect<float>({2, 3}, {1, 0, 0, 0, 0, 1})
      .run();
  OpTest("OneHot", 9)
      .attribute("axis", 0)
      .input<float>({2}, {1, 7})
      .input<float>({1}, {2})
      .input<std::string>({2}, {"n", "y"})
      .expect<std::string>({2, 2}, {"n", "n", "y", "n"})
      .run();
  EXPECT_NE(OpTest("OneHot")
                .input<int64_t>({1}, {0})
                .constant<int64_t>({}, {-1})
                .input<float>({2}, {0, 1})
                .error()
                .find("depth is -1"),
            std::string::npos);
}

}  // namespace
}  // namespace tenon

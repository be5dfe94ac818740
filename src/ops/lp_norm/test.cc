#include "op_test.h"

namespace tenon {
namespace {

TEST(LpNormalization, AxesAndPowers) {
  OpTest("LpNormalization").input<float>({2, 2}, {3, 4, 0, 0}).expect<float>({2, 2}, {0.6f, 0.8f, 0, 0}).run();
  OpTest("LpNormalization", 1)
      .attribute("p", 1)
      .input<float>({2, 2}, {-1, 3, 1, 1})
      .expect<float>({2, 2}, {-0.25f, 0.75f, 0.5f, 0.5f})
      .run();
  OpTest("LpNormalization")
      .attribute("axis", 0)
      .input<double>({2, 2}, {3, 5, 4, 12})
      .expect<double>({2, 2}, {0.6, 5 / 13., 0.8, 12 / 13.})
      .run();
}

TEST(LpNormalization, Errors) {
  std::string text = OpTest("LpNormalization").attribute("p", 3).input<float>({1}, {3}).error();
  EXPECT_EQ(text.substr(0, text.find('\n')),
            "invalid-attribute in LpNormalization 'tested' (node 0): p is 3; it may be 1 or 2");
}

}  // namespace
}  // namespace tenon

#include "op_test.h"

namespace tenon {
namespace {

TEST(Concat, Axes) {
  OpTest("Concat").attribute("axis", 0).input<float>({1, 2}, {1, 2}).input<float>({2, 2}, {3, 4, 5, 6}).expect<float>({3, 2}, {1, 2, 3, 4, 5, 6}).run();
  OpTest("Concat").attribute("axis", -1).input<float>({2, 1}, {1, 2}).input<float>({2, 0}, {}).input<float>({2, 2}, {3, 4, 5, 6})
      .expect<float>({2, 3}, {1, 3, 4, 2, 5, 6}).run();
  OpTest("Concat").attribute("axis", 0).input<std::string>({1}, {"a"}).input<std::string>({1}, {"b"}).expect<std::string>({2}, {"a", "b"}).run();
  OpTest("Concat", 1).input<float>({1, 1}, {1}).input<float>({1, 1}, {2}).expect<float>({1, 2}, {1, 2}).run();
}

TEST(Concat, Errors) {
  EXPECT_EQ(OpTest("Concat").attribute("axis", 0).input<float>({1, 2}, {1, 2}).input<float>({1, 1}, {1}).error(),
            "shape-mismatch in Concat 'tested' (node 0): inputs 0 and 1 have sizes 2 and 1 on axis 1; only axis 0 may differ\n"
            "  input 0 'in0' is tensor(float) [1, 2], an input of the graph\n"
            "  input 1 'in1' is tensor(float) [1, 1], an input of the graph");
}

}  // namespace
}  // namespace tenon

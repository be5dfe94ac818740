#include "op_test.h"

namespace tenon {
namespace {

TEST(Split, Parts) {
  OpTest("Split")
      .attribute("num_outputs", 2)
      .input<float>({3}, {1, 2, 3})
      .expect<float>({2}, {1, 2})
      .expect<float>({1}, {3})
      .run();
  OpTest("Split")
      .attribute("axis", 1)
      .input<float>({2, 3}, {1, 2, 3, 4, 5, 6})
      .input<int64_t>({2}, {1, 2})
      .expect<float>({2, 1}, {1, 4})
      .expect<float>({2, 2}, {2, 3, 5, 6})
      .run();
  OpTest("Split")
      .attribute("axis", -1)
      .input<std::string>({2, 2}, {"a", "b", "c", "d"})
      .constant<int64_t>({3}, {1, 0, 1})
      .expect<std::string>({2, 1}, {"a", "c"})
      .no_output()
      .expect<std::string>({2, 1}, {"b", "d"})
      .run();
  OpTest("Split", 13).input<float>({2}, {1, 2}).expect<float>({1}, {1}).expect<float>({1}, {2}).run();
  OpTest("Split", 2)
      .attribute("split", std::vector<int64_t>{2, 1})
      .input<float>({3}, {1, 2, 3})
      .expect<float>({2}, {1, 2})
      .expect<float>({1}, {3})
      .run();
}

TEST(Split, Errors) {
  EXPECT_EQ(OpTest("Split").input<float>({3}, {1, 2, 3}).constant<int64_t>({1}, {2}).error(),
            "shape-mismatch in Split 'tested' (node 0): the parts have 2 elements together, axis 0 has 3\n"
            "  input 0 'in0' is tensor(float) [3], an input of the graph\n"
            "  input 1 'in1' is tensor(int64) [1], an initializer");
}

TEST(Split, Version1TookSizesOfTheDatasType) {
  OpTest("Split", 1)
      .attribute("axis", 0)
      .input<float>({3}, {1, 2, 3})
      .input<float>({2}, {2, 1})
      .expect<float>({2}, {1, 2})
      .expect<float>({1}, {3})
      .run();
}

}  // namespace
}  // namespace tenon

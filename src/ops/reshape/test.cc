#include "op_test.h"

namespace tenon {
namespace {

OpTest reshape(std::initializer_list<int64_t> target) {
  OpTest test("Reshape");
  test.input<float>({2, 3}, {1, 2, 3, 4, 5, 6});
  test.input(Tensor(Shape{static_cast<int64_t>(target.size())}, target));
  return test;
}

TEST(Reshape, Targets) {
  reshape({6}).expect<float>({6}, {1, 2, 3, 4, 5, 6}).run();
  reshape({3, -1}).expect<float>({3, 2}, {1, 2, 3, 4, 5, 6}).run();
  reshape({0, -1, 1}).expect<float>({2, 3, 1}, {1, 2, 3, 4, 5, 6}).run();
  OpTest("Reshape").input<float>({1}, {5}).constant<int64_t>({0}, {}).expect<float>({}, {5}).run();
  OpTest("Reshape").input<float>({0, 4}, {}).constant<int64_t>({2}, {0, -1}).expect<float>({0, 4}, {}).run();
  OpTest("Reshape").attribute("allowzero", 1).input<float>({0, 4}, {}).constant<int64_t>({2}, {3, 0}).expect<float>({3, 0}, {}).run();
  OpTest("Reshape", 1).attribute("shape", std::vector<int64_t>{3, -1}).attribute("consumed_inputs", std::vector<int64_t>{0})
      .input<float>({2, 3}, {1, 2, 3, 4, 5, 6}).expect<float>({3, 2}, {1, 2, 3, 4, 5, 6}).run();
  OpTest("Reshape", 13).input<std::string>({2}, {"a", "b"}).constant<int64_t>({2}, {2, 1}).expect<std::string>({2, 1}, {"a", "b"}).run();
}

TEST(Reshape, Errors) {
  const std::string inputs =
      "\n  input 0 'in0' is tensor(float) [2, 3], an input of the graph\n  input 1 'in1' is tensor(int64) [2], an input of the graph";
  auto text = [&](const std::string& message) { return "shape-mismatch in Reshape 'tested' (node 0): " + message + inputs; };
  EXPECT_EQ(reshape({4, 2}).error(), text("6 elements of shape [2, 3] cannot take shape [4, 2]"));
  EXPECT_EQ(reshape({4, -1}).error(), text("6 elements cannot be split into parts of 4"));
  EXPECT_EQ(reshape({-1, -1}).error(), text("the new shape has -1 on axes 0 and 1; one may have it"));
  EXPECT_EQ(reshape({-2, 3}).error(), text("the new shape has size -2 on axis 0"));
}

TEST(Squeeze, Axes) {
  OpTest("Squeeze").input<float>({1, 2, 1}, {1, 2}).expect<float>({2}, {1, 2}).run();
  OpTest("Squeeze").input<float>({1, 2, 1}, {1, 2}).input<int64_t>({1}, {-1}).expect<float>({1, 2}, {1, 2}).run();
  OpTest("Squeeze", 11).attribute("axes", std::vector<int64_t>{0}).input<float>({1, 2, 1}, {1, 2}).expect<float>({2, 1}, {1, 2}).run();
  EXPECT_NE(OpTest("Squeeze").input<float>({1, 2}, {1, 2}).constant<int64_t>({1}, {1}).error().find("axis 1 has size 2, only size 1 can be removed"),
            std::string::npos);
}

TEST(Unsqueeze, Axes) {
  OpTest("Unsqueeze").input<float>({2}, {1, 2}).input<int64_t>({2}, {-1, 0}).expect<float>({1, 2, 1}, {1, 2}).run();
  OpTest("Unsqueeze", 1).attribute("axes", std::vector<int64_t>{1}).input<float>({2}, {1, 2}).expect<float>({2, 1}, {1, 2}).run();
  EXPECT_NE(OpTest("Unsqueeze").input<float>({2}, {1, 2}).constant<int64_t>({2}, {1, 1}).error().find("axis 1 is given twice"), std::string::npos);
}

TEST(Flatten, Axis) {
  OpTest("Flatten").input<float>({2, 1, 2}, {1, 2, 3, 4}).expect<float>({2, 2}, {1, 2, 3, 4}).run();
  OpTest("Flatten").attribute("axis", 0).input<float>({2, 1, 2}, {1, 2, 3, 4}).expect<float>({1, 4}, {1, 2, 3, 4}).run();
  OpTest("Flatten", 9).attribute("axis", 3).input<float>({2, 1, 2}, {1, 2, 3, 4}).expect<float>({4, 1}, {1, 2, 3, 4}).run();
}

}  // namespace
}  // namespace tenon

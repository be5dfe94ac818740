#include "op_test.h"

namespace tenon {
namespace {

TEST(Constant, Attributes) {
  OpTest("Constant").attribute("value", Tensor(Shape{2}, {1.0f, 2.0f})).expect<float>({2}, {1, 2}).run();
  OpTest("Constant").attribute("value_float", 2.5f).expect<float>({}, {2.5f}).run();
  OpTest("Constant").attribute("value_int", 7).expect<int64_t>({}, {7}).run();
  OpTest("Constant").attribute("value_ints", std::vector<int64_t>{7, 8}).expect<int64_t>({2}, {7, 8}).run();
  OpTest("Constant").attribute("value_string", "a").expect<std::string>({}, {"a"}).run();
  OpTest("Constant", 1).attribute("value", Tensor(Shape{}, {3.0f})).expect<float>({}, {3}).run();
}

TEST(Constant, Errors) {
  EXPECT_EQ(OpTest("Constant").error(), "invalid-attribute in Constant 'tested' (node 0): Constant takes one attribute, 0 are given");
}

}  // namespace
}  // namespace tenon

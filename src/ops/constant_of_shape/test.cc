#include "op_test.h"

namespace tenon {
namespace {

TEST(ConstantOfShape, Values) {
  OpTest("ConstantOfShape").input<int64_t>({2}, {2, 1}).expect<float>({2, 1}, {0, 0}).run();
  OpTest("ConstantOfShape", 9)
      .attribute("value", Tensor(Shape{1}, {int64_t{7}}))
      .input<int64_t>({1}, {3})
      .expect<int64_t>({3}, {7, 7, 7})
      .run();
  OpTest("ConstantOfShape")
      .attribute("value", Tensor(Shape{1}, {int32_t{7}}))
      .constant<int64_t>({0}, {})
      .expect<int32_t>({}, {7})
      .run();
  OpTest("ConstantOfShape").input<int64_t>({2}, {0, 5}).expect<float>({0, 5}, {}).run();
  EXPECT_NE(OpTest("ConstantOfShape").constant<int64_t>({1}, {-1}).error().find("the shape has size -1 on axis 0"),
            std::string::npos);
}

TEST(EyeLike, Diagonals) {
  OpTest("EyeLike").input<float>({2, 2}, {5, 5, 5, 5}).expect<float>({2, 2}, {1, 0, 0, 1}).run();
  OpTest("EyeLike")
      .attribute("k", 1)
      .attribute("dtype", 7)
      .input<float>({2, 3}, {5, 5, 5, 5, 5, 5})
      .expect<int64_t>({2, 3}, {0, 1, 0, 0, 0, 1})
      .run();
  OpTest("EyeLike", 9)
      .attribute("k", -1)
      .input<bool>({2, 2}, {true, true, true, true})
      .expect<bool>({2, 2}, {false, false, true, false})
      .run();
  OpTest("EyeLike").attribute("k", 5).input<float>({1, 1}, {5}).expect<float>({1, 1}, {0}).run();
  EXPECT_NE(OpTest("EyeLike").attribute("dtype", 0).input<float>({1, 1}, {5}).error().find("dtype is 0"),
            std::string::npos);
}

}  // namespace
}  // namespace tenon

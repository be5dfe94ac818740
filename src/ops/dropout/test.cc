#include "op_test.h"

namespace tenon {
namespace {

TEST(Dropout, Inference) {
  OpTest("Dropout").input<float>({2}, {1, 2}).expect<float>({2}, {1, 2}).expect<bool>({2}, {true, true}).run();
  OpTest("Dropout")
      .input<float>({2}, {1, 2})
      .constant<float>({}, {0.5f})
      .constant<bool>({}, {false})
      .expect<float>({2}, {1, 2})
      .run();
  OpTest("Dropout", 10)
      .attribute("ratio", 0.1f)
      .input<double>({2}, {1, 2})
      .expect<double>({2}, {1, 2})
      .expect<bool>({2}, {true, true})
      .run();
  OpTest("Dropout", 6)
      .attribute("is_test", 1)
      .attribute("ratio", 0.1f)
      .input<float>({2}, {1, 2})
      .expect<float>({2}, {1, 2})
      .run();
}

TEST(Dropout, Training) {
  OpTest("Dropout")
      .input<float>({2}, {1, 2})
      .constant<float>({}, {0.0f})
      .constant<bool>({}, {true})
      .expect<float>({2}, {1, 2})
      .run();
  OpTest("Dropout")
      .attribute("seed", 0)
      .input<float>({4}, {1, 1, 1, 1})
      .constant<float>({}, {0.6f})
      .constant<bool>({}, {true})
      .expect<float>({4}, {0, 2.5f, 2.5f, 0})
      .expect<bool>({4}, {false, true, true, false})
      .run();
  EXPECT_EQ(OpTest("Dropout").input<float>({1}, {1}).constant<float>({}, {1.5f}).constant<bool>({}, {true}).error(),
            "invalid-value in Dropout 'tested' (node 0): ratio is 1.5; it must be at least 0 and below 1");
}

TEST(Dropout, MaskHadTheTypeOfTheData) {
  OpTest("Dropout", 7)
      .attribute("ratio", 0.1f)
      .input<float>({2}, {1, 2})
      .expect<float>({2}, {1, 2})
      .expect<float>({2}, {1, 1})
      .run();
}

}  // namespace
}  // namespace tenon

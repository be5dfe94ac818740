#include "op_test.h"

namespace tenon {
namespace {

TEST(InstanceNormalization, Versions) {
  for (int opset : {1, 6, 22}) {
    OpTest("InstanceNormalization", opset)
        .attribute("epsilon", 0.0f)
        .input<float>({1, 2, 2}, {1, 3, 10, 30})
        .input<float>({2}, {1, 2})
        .input<float>({2}, {0, 1})
        .expect<float>({1, 2, 2}, {-1, 1, -1, 3})
        .run();
  }
  OpTest("InstanceNormalization")
      .attribute("epsilon", 0.0f)
      .input<double>({2, 1, 2}, {1, 3, 10, 30})
      .input<double>({1}, {1})
      .input<double>({1}, {0})
      .expect<double>({2, 1, 2}, {-1, 1, -1, 1})
      .run();
}

TEST(GroupNormalization, PerChannelScale) {
  OpTest("GroupNormalization")
      .attribute("num_groups", 1)
      .attribute("epsilon", 0.0f)
      .input<float>({1, 2, 1}, {1, 3})
      .input<float>({2}, {1, 2})
      .input<float>({2}, {0, 1})
      .expect<float>({1, 2, 1}, {-1, 3})
      .run();
  OpTest("GroupNormalization")
      .attribute("num_groups", 1)
      .attribute("epsilon", 0.0f)
      .input<float16>({1, 2, 1}, {float16(1), float16(3)})
      .input<float16>({2}, {float16(1), float16(2)})
      .input<float16>({2}, {float16(0), float16(1)})
      .expect<float16>({1, 2, 1}, {float16(-1), float16(3)})
      .run();
}

TEST(GroupNormalization, PerGroupScale) {
  OpTest("GroupNormalization", 18)
      .attribute("num_groups", 2)
      .attribute("epsilon", 0.0f)
      .input<float>({1, 4, 1}, {1, 3, 10, 30})
      .input<float>({2}, {1, 2})
      .input<float>({2}, {0, 1})
      .expect<float>({1, 4, 1}, {-1, 1, -1, 3})
      .run();
}

TEST(GroupNormalization, Errors) {
  std::string text = OpTest("GroupNormalization")
                         .attribute("num_groups", 2)
                         .input<float>({1, 3, 1}, {1, 3, 5})
                         .input<float>({3}, {1, 2, 3})
                         .input<float>({3}, {0, 1, 2})
                         .error();
  EXPECT_EQ(text.substr(0, text.find('\n')),
            "shape-mismatch in GroupNormalization 'tested' (node 0): 3 channels cannot be divided into 2 groups");
}

}  // namespace
}  // namespace tenon

#include "op_test.h"

namespace tenon {
namespace {

OpTest normalization(int64_t opset = ops::newest_opset) {
  OpTest test("BatchNormalization", opset);
  test.attribute("epsilon", 0.0f).input<float>({1, 2, 2}, {1, 2, 3, 4});
  test.constant<float>({2}, {1, 2})
      .constant<float>({2}, {0, 10})
      .constant<float>({2}, {1, 3})
      .constant<float>({2}, {1, 4});
  return test;
}

TEST(BatchNormalization, Versions) {
  normalization().expect<float>({1, 2, 2}, {0, 1, 10, 11}).run();
  normalization(9).attribute("momentum", 0.5f).expect<float>({1, 2, 2}, {0, 1, 10, 11}).run();
  normalization(7).attribute("spatial", 1).expect<float>({1, 2, 2}, {0, 1, 10, 11}).run();
  normalization(6).attribute("is_test", 1).expect<float>({1, 2, 2}, {0, 1, 10, 11}).run();
  normalization(1).attribute("consumed_inputs", {0, 0, 0, 1, 1}).expect<float>({1, 2, 2}, {0, 1, 10, 11}).run();
}

TEST(BatchNormalization, NotSpatial) {
  for (int opset : {6, 7}) {
    OpTest("BatchNormalization", opset)
        .attribute("spatial", 0)
        .attribute("epsilon", 0.0f)
        .input<float>({2, 1, 2}, {1, 2, 3, 4})
        .input<float>({1, 2}, {1, 10})
        .input<float>({1, 2}, {0, 1})
        .input<float>({1, 2}, {1, 2})
        .input<float>({1, 2}, {1, 4})
        .expect<float>({2, 1, 2}, {0, 1, 2, 11})
        .run();
  }
}

TEST(BatchNormalization, Training) {
  auto test = [](int64_t opset) {
    OpTest t("BatchNormalization", opset);
    t.attribute("epsilon", 0.0f)
        .attribute("momentum", 0.5f)
        .input<float>({2, 1, 2}, {1, 3, 1, 3})
        .input<float>({1}, {1});
    t.input<float>({1}, {0}).input<float>({1}, {4}).input<float>({1}, {3});
    return t;
  };
  test(15)
      .attribute("training_mode", 1)
      .expect<float>({2, 1, 2}, {-1, 1, -1, 1})
      .expect<float>({1}, {3})
      .expect<float>({1}, {2})
      .run();
  test(9).expect<float>({2, 1, 2}, {-1, 1, -1, 1}).expect<float>({1}, {3}).expect<float>({1}, {2}).run();
}

TEST(BatchNormalization, Types) {
  OpTest("BatchNormalization")
      .input<float16>({2, 1}, {float16(1), float16(3)})
      .input<float>({1}, {2})
      .input<float>({1}, {1})
      .input<double>({1}, {1})
      .input<double>({1}, {1})
      .expect<float16>({2, 1}, {float16(1), float16(5)})
      .tolerance(1e-2, 1e-2)
      .run();
  OpTest("BatchNormalization")
      .input<double>({3}, {1, 2, 3})
      .input<double>({1}, {2})
      .input<double>({1}, {1})
      .input<double>({1}, {1})
      .input<double>({1}, {1})
      .expect<double>({3}, {1, 3, 5})
      .tolerance(1e-4, 1e-4)
      .run();
}

}  // namespace
}  // namespace tenon

#include "op_test.h"

namespace tenon {
namespace {

OpTest rows(int64_t opset = ops::newest_opset) {
  OpTest test("LayerNormalization", opset);
  test.attribute("epsilon", 0.0f).input<float>({2, 2}, {1, 3, 10, 30});
  return test;
}

TEST(LayerNormalization, ScaleAndBias) {
  rows().input<float>({2}, {1, 2}).expect<float>({2, 2}, {-1, 2, -1, 2}).run();
  rows(12).input<float>({2}, {1, 2}).input<float>({2}, {1, 1}).expect<float>({2, 2}, {0, 3, 0, 3}).run();
  rows().input<float>({1}, {2}).input<float>({}, {1}).expect<float>({2, 2}, {-1, 3, -1, 3}).run();
  rows().input<float>({2, 1}, {1, 2}).expect<float>({2, 2}, {-1, 1, -2, 2}).run();
}

TEST(LayerNormalization, Statistics) {
  rows()
      .input<float>({2}, {1, 1})
      .expect<float>({2, 2}, {-1, 1, -1, 1})
      .expect<float>({2, 1}, {2, 20})
      .expect<float>({2, 1}, {1, 0.1f})
      .run();
  rows()
      .input<float>({2}, {1, 1})
      .expect<float>({2, 2}, {-1, 1, -1, 1})
      .no_output()
      .expect<float>({2, 1}, {1, 0.1f})
      .run();
}

TEST(LayerNormalization, AxisAndTypes) {
  OpTest("LayerNormalization")
      .attribute("axis", 0)
      .attribute("epsilon", 0.0f)
      .input<double>({2, 2}, {1, 3, 1, 3})
      .input<double>({2, 2}, {1, 2, 3, 4})
      .expect<double>({2, 2}, {-1, 2, -3, 4})
      .expect<float>({1, 1}, {2})
      .run();
  OpTest("LayerNormalization")
      .attribute("epsilon", 0.0f)
      .input<float16>({2}, {float16(1), float16(3)})
      .input<float16>({2}, {float16(1), float16(2)})
      .expect<float16>({2}, {float16(-1), float16(2)})
      .run();
}

TEST(LayerNormalization, Errors) {
  std::string text = rows().input<float>({3, 2, 2}, {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}).error();
  EXPECT_EQ(text.substr(0, text.find('\n')),
            "shape-mismatch in LayerNormalization 'tested' (node 0): input 1 of shape [3, 2, 2] does not broadcast to "
            "[2, 2]");
}

TEST(RMSNormalization, Rows) {
  OpTest("RMSNormalization")
      .attribute("epsilon", 0.0f)
      .input<float>({2, 2}, {1, 7, 2, 14})
      .input<float>({2}, {5, 10})
      .expect<float>({2, 2}, {1, 14, 1, 14})
      .run();
  OpTest("RMSNormalization")
      .attribute("epsilon", 0.0f)
      .input<float>({2}, {1, 7})
      .input<float16>({2}, {float16(5), float16(10)})
      .expect<float16>({2}, {float16(1), float16(14)})
      .run();
}

TEST(SkipLayerNormalization, SumIsAnOutput) {
  OpTest("SkipLayerNormalization", 1, "tenon")
      .attribute("epsilon", 0.0f)
      .input<float>({2, 1, 2}, {0, 1, 6, 25})
      .input<float>({2, 1, 2}, {0, 1, 3, 4})
      .input<float>({2}, {1, 2})
      .input<float>({2}, {0, 1})
      .input<float>({2}, {1, 1})
      .expect<float>({2, 1, 2}, {-1, 3, -1, 3})
      .expect<float>({2, 1, 2}, {1, 3, 10, 30})
      .run();
}

TEST(SkipLayerNormalization, RepeatsWhatIsAdded) {
  for (const Shape& shape : {Shape{1, 2, 2}, Shape{2, 2}}) {
    OpTest("SkipLayerNormalization", 1, "tenon")
        .attribute("epsilon", 0.0f)
        .input<float>({2, 2, 2}, {0, 0, 0, 0, 1, 7, 2, 6})
        .input(Tensor(shape, {1.0f, 3.0f, 3.0f, 1.0f}))
        .input<float>({2}, {1, 1})
        .expect<float>({2, 2, 2}, {-1, 1, 1, -1, -1, 1, -1, 1})
        .run();
  }
  OpTest("SkipLayerNormalization", 1, "tenon")
      .attribute("axis", 1)
      .attribute("epsilon", 0.0f)
      .input<float>({1, 2, 2}, {0, 1, 2, -1})
      .input<float>({2, 2}, {1, 2, 1, 2})
      .input<float>({2, 2}, {1, 2, 3, 4})
      .expect<float>({1, 2, 2}, {-1, 2, 3, -4})
      .run();
}

TEST(SkipLayerNormalization, Errors) {
  std::string text = OpTest("SkipLayerNormalization", 1, "tenon")
                         .input<float>({1, 2}, {1, 2})
                         .input<float>({2, 2}, {1, 2, 3, 4})
                         .input<float>({2}, {1, 2})
                         .error();
  EXPECT_EQ(text.substr(0, text.find('\n')),
            "shape-mismatch in tenon.SkipLayerNormalization 'tested' (node 0): the sizes of what is added and of the "
            "last axes of X must be equal: 2 against 1");
}

TEST(SkipRMSNormalization, Rows) {
  OpTest("SkipRMSNormalization", 1, "tenon")
      .attribute("epsilon", 0.0f)
      .input<float>({2, 2}, {0, 5, 1, 12})
      .input<float>({2, 2}, {0, 1, 0, 1})
      .input<float>({2}, {5, 10})
      .input<float>({2}, {1, 1})
      .expect<float>({2, 2}, {1, 14, 1, 14})
      .expect<float>({2, 2}, {1, 7, 2, 14})
      .run();
}

}  // namespace
}  // namespace tenon

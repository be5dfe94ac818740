#include "op_test.h"

namespace tenon {
namespace {

TEST(MeanVarianceNormalization, Axes) {
  OpTest("MeanVarianceNormalization")
      .input<float>({2, 2, 1, 1}, {1, 10, 3, 30})
      .expect<float>({2, 2, 1, 1}, {-1, -1, 1, 1})
      .run();
  OpTest("MeanVarianceNormalization", 9)
      .attribute("axes", {-1})
      .input<double>({2, 2}, {1, 3, 5, 5})
      .expect<double>({2, 2}, {-1, 1, 0, 0})
      .run();
  OpTest("MeanVarianceNormalization")
      .attribute("axes", {0, 1})
      .input<float>({2, 2}, {1, 3, 3, 1})
      .expect<float>({2, 2}, {-1, 1, 1, -1})
      .run();
}

}  // namespace
}  // namespace tenon

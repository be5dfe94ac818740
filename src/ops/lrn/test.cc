#include "op_test.h"

namespace tenon {
namespace {

TEST(LRN, Windows) {
  // Sums of squares: 1 + 4, 1 + 4 + 9, 4 + 9.
  OpTest("LRN")
      .attribute("size", 3)
      .attribute("alpha", 3.0f)
      .attribute("beta", 1.0f)
      .input<float>({1, 3, 1}, {1, 2, 3})
      .expect<float>({1, 3, 1}, {1 / 6.f, 2 / 15.f, 3 / 14.f})
      .run();
  // An even window reaches further forward: 1 + 4, 4 + 9, 9.
  OpTest("LRN")
      .attribute("size", 2)
      .attribute("alpha", 2.0f)
      .attribute("beta", 1.0f)
      .input<double>({1, 3, 1}, {1, 2, 3})
      .expect<double>({1, 3, 1}, {1 / 6., 2 / 14., 3 / 10.})
      .run();
  OpTest("LRN", 1)
      .attribute("size", 1)
      .attribute("alpha", 1.0f)
      .attribute("bias", 0.0f)
      .input<float>({1, 1, 2}, {4, 16})
      .expect<float>({1, 1, 2}, {0.5f, 0.25f})
      .run();
  OpTest("LRN")
      .attribute("size", 9000000000000)
      .attribute("alpha", 0.0f)
      .input<float16>({1, 2}, {float16(4), float16(16)})
      .expect<float16>({1, 2}, {float16(4), float16(16)})
      .run();
}

}  // namespace
}  // namespace tenon

#include "op_test.h"

namespace tenon {
namespace {

TEST(GlobalPool, Functions) {
  OpTest("GlobalAveragePool").input<float>({1, 2, 2, 1}, {1, 2, 3, 5}).expect<float>({1, 2, 1, 1}, {1.5, 4}).run();
  OpTest("GlobalMaxPool").input<float>({1, 2, 2, 1}, {-1, -2, 3, 5}).expect<float>({1, 2, 1, 1}, {-1, 5}).run();
  OpTest("GlobalLpPool").input<float>({1, 2, 2, 1}, {3, -4, 5, 12}).expect<float>({1, 2, 1, 1}, {5, 13}).run();
  OpTest("GlobalLpPool").attribute("p", 1).input<double>({1, 1, 2}, {3, -4}).expect<double>({1, 1, 1}, {7}).run();
  OpTest("GlobalLpPool", 1)
      .attribute("p", 3.0f)
      .input<float>({1, 1, 2}, {1, 2})
      .expect<float>({1, 1, 1}, {2.0800838f})
      .run();
}

TEST(GlobalPool, Types) {
  OpTest("GlobalAveragePool").input<double>({1, 1, 3}, {1, 2, 6}).expect<double>({1, 1, 1}, {3}).run();
  OpTest("GlobalAveragePool")
      .input<bfloat16>({1, 1, 2}, {bfloat16(1), bfloat16(2)})
      .expect<bfloat16>({1, 1, 1}, {bfloat16(1.5f)})
      .run();
  OpTest("GlobalMaxPool")
      .input<float16>({1, 1, 2}, {float16(1), float16(2)})
      .expect<float16>({1, 1, 1}, {float16(2)})
      .run();
  OpTest("GlobalMaxPool").input<float>({0, 3, 2}, {}).expect<float>({0, 3, 1}, {}).run();
}

}  // namespace
}  // namespace tenon

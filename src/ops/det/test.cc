#include "op_test.h"

namespace tenon {
namespace {

TEST(Det, Matrices) {
  OpTest("Det").input<float>({2, 2}, {0, 2, 3, 4}).expect<float>({}, {-6}).run();
  OpTest("Det", 11).input<double>({2, 2, 2}, {1, 2, 3, 4, 1, 2, 2, 4}).expect<double>({2}, {-2, 0}).run();
  OpTest("Det").input<float16>({1, 1}, {float16(3)}).expect<float16>({}, {float16(3)}).run();
  OpTest("Det").input<float>({0, 0}, {}).expect<float>({}, {1}).run();
}

}  // namespace
}  // namespace tenon

#include "op_test.h"

namespace tenon {
namespace {

TEST(Where, Broadcast) {
  OpTest("Where").input<bool>({2}, {true, false}).input<float>({2}, {1, 2}).input<float>({2}, {3, 4}).expect<float>({2}, {1, 4}).run();
  OpTest("Where").input<bool>({2, 1}, {true, false}).input<float>({1, 2}, {1, 2}).input<float>({}, {9}).expect<float>({2, 2}, {1, 2, 9, 9}).run();
  OpTest("Where").input<bool>({2}, {true, false}).input<int64_t>({2, 1}, {1, 2}).input<int64_t>({2}, {3, 4}).expect<int64_t>({2, 2}, {1, 4, 2, 4}).run();
  OpTest("Where").input<bool>({2}, {true, false}).input<double>({}, {1}).input<double>({}, {3}).expect<double>({2}, {1, 3}).run();
  OpTest("Where").input<bool>({0}, {}).input<float>({}, {1}).input<float>({1}, {3}).expect<float>({0}, {}).run();
}

TEST(Where, Types) {
  OpTest("Where").input<bool>({2}, {true, false}).input<std::string>({}, {"yes"}).input<std::string>({1}, {"no"}).expect<std::string>({2}, {"yes", "no"}).run();
  using Complex = std::complex<double>;
  OpTest("Where").input<bool>({2}, {true, false}).input<Complex>({2}, {{1, 2}, {3, 4}}).input<Complex>({1}, {{5, 6}}).expect<Complex>({2}, {{1, 2}, {5, 6}}).run();
}

}  // namespace
}  // namespace tenon

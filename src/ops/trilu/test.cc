#include "op_test.h"

namespace tenon {
namespace {

TEST(Trilu, Diagonals) {
  auto trilu = [](int upper, int64_t k) {
    auto test = std::make_unique<OpTest>("Trilu", 14);
    test->attribute("upper", upper).input<float>({2, 3}, {1, 2, 3, 4, 5, 6}).input<int64_t>({}, {k});
    return test;
  };
  trilu(1, 0)->expect<float>({2, 3}, {1, 2, 3, 0, 5, 6}).run();
  trilu(1, 1)->expect<float>({2, 3}, {0, 2, 3, 0, 0, 6}).run();
  trilu(0, 0)->expect<float>({2, 3}, {1, 0, 0, 4, 5, 0}).run();
  trilu(0, -1)->expect<float>({2, 3}, {0, 0, 0, 4, 0, 0}).run();
  trilu(1, INT64_MIN)->expect<float>({2, 3}, {1, 2, 3, 4, 5, 6}).run();
  trilu(0, INT64_MAX)->expect<float>({2, 3}, {1, 2, 3, 4, 5, 6}).run();
  OpTest("Trilu")
      .input<std::string>({1, 2, 2}, {"a", "b", "c", "d"})
      .expect<std::string>({1, 2, 2}, {"a", "b", "", "d"})
      .run();
}

}  // namespace
}  // namespace tenon

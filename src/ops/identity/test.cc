#include "op_test.h"

namespace tenon {
namespace {

TEST(Identity, Kinds) {
  OpTest("Identity").input<float>({2, 1}, {1, 2}).expect<float>({2, 1}, {1, 2}).run();
  OpTest("Identity", 1).input<std::string>({1}, {"a"}).expect<std::string>({1}, {"a"}).run();
  Sequence sequence{{Tensor(Shape{1}, {1.0f}), Tensor(Shape{2}, {2.0f, 3.0f})}};
  OpTest("Identity", 14).input(sequence).expect(sequence).run();
}

}  // namespace
}  // namespace tenon

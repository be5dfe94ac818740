#include "op_test.h"

namespace tenon {
namespace {

Optional holding(Value value) { return Optional{std::make_shared<const Value>(std::move(value))}; }

TEST(Optional, MakeAskAndGet) {
  Tensor one(Shape{1}, {1.0f});
  OpTest("Optional").input(one).expect(holding(one)).run();
  OpTest("OptionalHasElement").input(holding(one)).expect<bool>({}, {true}).run();
  OpTest("OptionalHasElement").input(one).expect<bool>({}, {true}).run();
  OpTest("OptionalHasElement", 18).no_input().expect<bool>({}, {false}).run();
  OpTest("OptionalGetElement", 15).input(holding(one)).expect(one).run();
  OpTest("OptionalGetElement").input(one).expect(one).run();
}

}  // namespace
}  // namespace tenon

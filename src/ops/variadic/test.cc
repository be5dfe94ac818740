#include "op_test.h"

namespace tenon {
namespace {

TEST(Variadic, Broadcast) {
  OpTest("Max").input<float>({2}, {1, 5}).input<float>({2, 1}, {2, 3}).expect<float>({2, 2}, {2, 5, 3, 5}).run();
  OpTest("Min")
      .input<int8_t>({2}, {1, 5})
      .input<int8_t>({}, {3})
      .input<int8_t>({1}, {-1})
      .expect<int8_t>({2}, {-1, -1})
      .run();
  OpTest("Sum")
      .input<float>({2}, {1, 5})
      .input<float>({2, 1}, {2, 3})
      .input<float>({1}, {10})
      .expect<float>({2, 2}, {13, 17, 14, 18})
      .run();
  OpTest("Mean")
      .input<float>({2}, {1, 5})
      .input<float>({2}, {2, 3})
      .input<float>({2}, {3, 4})
      .expect<float>({2}, {2, 4})
      .run();
  OpTest("Mean")
      .input<float16>({1}, {float16(1)})
      .input<float16>({1}, {float16(2)})
      .expect<float16>({1}, {float16(1.5f)})
      .run();
  OpTest("Sum").input<double>({2}, {1, 5}).expect<double>({2}, {1, 5}).run();
  OpTest("Max").input<float>({2}, {NAN, 1}).input<float>({2}, {1, NAN}).expect<float>({2}, {NAN, NAN}).run();
}

TEST(Variadic, OldVersions) {
  OpTest("Max", 1)
      .attribute("consumed_inputs", std::vector<int64_t>{0})
      .input<float>({1}, {1})
      .input<float>({1}, {2})
      .expect<float>({1}, {2})
      .run();
}

TEST(Variadic, NoInputMayBeLeftOut) {
  EXPECT_EQ(OpTest("Max").input<float>({1}, {1}).no_input().input<float>({1}, {2}).expect<float>({1}, {2}).error(),
            "invalid-model in Max 'tested' (node 0): its input 1, one of 'inputs', is left out");
}

}  // namespace
}  // namespace tenon

#include "op_test.h"

namespace tenon {
namespace {

TEST(ScatterElements, Reductions) {
  OpTest("ScatterElements").attribute("axis", 1).input<float>({1, 3}, {1, 2, 3}).input<int64_t>({1, 2}, {-1, 0}).input<float>({1, 2}, {8, 9})
      .expect<float>({1, 3}, {9, 2, 8}).run();
  OpTest("ScatterElements").input<float>({2, 2}, {0, 0, 0, 0}).input<int32_t>({1, 2}, {1, 0}).input<float>({1, 2}, {5, 6}).expect<float>({2, 2}, {0, 6, 5, 0}).run();
  OpTest("ScatterElements").attribute("reduction", "add").input<int64_t>({2}, {1, 2}).input<int64_t>({3}, {0, 0, 1}).input<int64_t>({3}, {1, 1, 5})
      .expect<int64_t>({2}, {3, 7}).run();
  OpTest("ScatterElements").attribute("reduction", "max").input<float16>({1}, {float16(1)}).input<int64_t>({2}, {0, 0}).input<float16>({2}, {float16(3), float16(2)})
      .expect<float16>({1}, {float16(3)}).run();
  OpTest("Scatter", 9).input<std::string>({2}, {"a", "b"}).input<int64_t>({1}, {1}).input<std::string>({1}, {"c"}).expect<std::string>({2}, {"a", "c"}).run();
}

TEST(ScatterElements, Errors) {
  EXPECT_EQ(OpTest("ScatterElements").input<float>({1}, {1}).input<int64_t>({1}, {1}).input<float>({1}, {1}).error(),
            "invalid-value in ScatterElements 'tested' (node 0): index 1 is out of range for size 1 on axis 0");
  EXPECT_NE(OpTest("ScatterElements").attribute("reduction", "add").input<std::string>({1}, {"a"}).input<int64_t>({1}, {0}).input<std::string>({1}, {"b"}).error()
                .find("elements of type string have no reduction 'add'"), std::string::npos);
  EXPECT_NE(OpTest("ScatterElements").attribute("reduction", "avg").input<float>({1}, {1}).input<int64_t>({1}, {0}).input<float>({1}, {1}).error()
                .find("reduction 'avg' is not one of none, add, mul, max, min"), std::string::npos);
}

TEST(ScatterND, Blocks) {
  OpTest("ScatterND").input<float>({4}, {1, 2, 3, 4}).input<int64_t>({2, 1}, {3, 0}).input<float>({2}, {9, 8}).expect<float>({4}, {8, 2, 3, 9}).run();
  OpTest("ScatterND").attribute("reduction", "mul").input<float>({2, 2}, {1, 2, 3, 4}).input<int64_t>({2, 1}, {1, 1}).input<float>({2, 2}, {2, 2, 3, 3})
      .expect<float>({2, 2}, {1, 2, 18, 24}).run();
  OpTest("ScatterND", 11).input<float>({2}, {1, 2}).input<int64_t>({0, 1}, {}).input<float>({0}, {}).expect<float>({2}, {1, 2}).run();
  EXPECT_NE(OpTest("ScatterND").input<float>({2}, {1, 2}).input<int64_t>({1, 1}, {-3}).input<float>({1}, {1}).error().find("index -3 is out of range for size 2 on axis 0"),
            std::string::npos);
}

TEST(TensorScatter, Modes) {
  OpTest("TensorScatter").input<float>({1, 3, 1}, {1, 2, 3}).input<float>({1, 2, 1}, {8, 9}).expect<float>({1, 3, 1}, {8, 9, 3}).run();
  OpTest("TensorScatter").attribute("mode", "circular").input<float>({1, 3, 1}, {1, 2, 3}).input<float>({1, 2, 1}, {8, 9}).input<int64_t>({1}, {2})
      .expect<float>({1, 3, 1}, {9, 2, 8}).run();
  EXPECT_NE(OpTest("TensorScatter").input<float>({1, 3, 1}, {1, 2, 3}).input<float>({1, 2, 1}, {8, 9}).input<int64_t>({1}, {2}).error()
                .find("write index 2 of batch 0 and length 2 do not fit in a cache of 3"), std::string::npos);
}

}  // namespace
}  // namespace tenon

#include "op_test.h"

namespace tenon {
namespace {

TEST(Clip, Bounds) {
  OpTest("Clip")
      .input<float>({3}, {-2, 0, 2})
      .input<float>({}, {-1})
      .constant<float>({}, {1})
      .expect<float>({3}, {-1, 0, 1})
      .run();
  OpTest("Clip").input<float>({3}, {-2, 0, 2}).no_input().input<float>({}, {1}).expect<float>({3}, {-2, 0, 1}).run();
  OpTest("Clip").input<int8_t>({3}, {-2, 0, 2}).input<int8_t>({}, {-1}).expect<int8_t>({3}, {-1, 0, 2}).run();
  OpTest("Clip")
      .input<float>({2}, {-5, 5})
      .input<float>({}, {2})
      .input<float>({}, {1})
      .expect<float>({2}, {1, 1})
      .run();
  OpTest("Clip")
      .input<float16>({1}, {float16(3)})
      .no_input()
      .input<float16>({}, {float16(2)})
      .expect<float16>({1}, {float16(2)})
      .run();
  OpTest("Clip").input<double>({2}, {1, 2}).expect<double>({2}, {1, 2}).run();
}

// Whole vectors and what is left over.
TEST(Clip, NaNStays) {
  constexpr int64_t n = 41;
  Tensor x(ElementType::float32, {n}), y(ElementType::float32, {n});
  for (int64_t i = 0; i < n; ++i) {
    const auto at = static_cast<size_t>(i);
    const float value = i % 9 == 4 ? NAN : static_cast<float>(i % 23 - 11);
    x.mutable_data<float>()[at] = value;
    y.mutable_data<float>()[at] = value < -3 ? -3 : value > 5 ? 5 : value;
  }
  OpTest("Clip").input(x).input<float>({}, {-3}).input<float>({}, {5}).expect(y).run();
}

TEST(Clip, OldVersions) {
  OpTest("Clip", 6).attribute("max", 1.0f).input<float>({2}, {-5, 5}).expect<float>({2}, {-5, 1}).run();
  OpTest("Clip", 6)
      .attribute("min", 0.0f)
      .attribute("max", 1.0f)
      .input<double>({2}, {-5, 5})
      .expect<double>({2}, {0, 1})
      .run();
  OpTest("Clip", 1)
      .attribute("consumed_inputs", std::vector<int64_t>{0})
      .input<float>({1}, {5})
      .expect<float>({1}, {5})
      .run();
}

TEST(Clip, Errors) {
  EXPECT_EQ(OpTest("Clip").input<float>({1}, {1}).input<float>({2}, {1, 2}).error(),
            "shape-mismatch in Clip 'tested' (node 0): input 1 must be one number\n"
            "  input 0 'in0' is tensor(float) [1], an input of the graph\n"
            "  input 1 'in1' is tensor(float) [2], an input of the graph");
}

}  // namespace
}  // namespace tenon

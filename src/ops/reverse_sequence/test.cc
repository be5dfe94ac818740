#include "op_test.h"

namespace tenon {
namespace {

TEST(ReverseSequence, Axes) {
  OpTest("ReverseSequence", 10)
      .input<float>({3, 2}, {1, 2, 3, 4, 5, 6})
      .input<int64_t>({2}, {3, 2})
      .expect<float>({3, 2}, {5, 4, 3, 2, 1, 6})
      .run();
  OpTest("ReverseSequence")
      .attribute("time_axis", 1)
      .attribute("batch_axis", 0)
      .input<float>({2, 3}, {1, 2, 3, 4, 5, 6})
      .input<int64_t>({2}, {1, 3})
      .expect<float>({2, 3}, {1, 2, 3, 6, 5, 4})
      .run();
  OpTest("ReverseSequence")
      .input<std::string>({3, 1}, {"a", "b", "c"})
      .input<int64_t>({1}, {2})
      .expect<std::string>({3, 1}, {"b", "a", "c"})
      .run();
  EXPECT_NE(OpTest("ReverseSequence")
                .input<float>({1, 1}, {1})
                .input<int64_t>({1}, {2})
                .error()
                .find("length 2 of sequence 0 is not 0 to 1"),
            std::string::npos);
}

// Longer than a cache line, and not a multiple of it.
TEST(ReverseSequence, LongSteps) {
  Tensor x(ElementType::float32, Shape{3, 2, 37}), y(ElementType::float32, Shape{3, 2, 37});
  const size_t lengths[] = {3, 2};
  for (size_t t = 0; t < 3; ++t) {
    for (size_t b = 0; b < 2; ++b) {
      const size_t source = t < lengths[b] ? lengths[b] - 1 - t : t;
      for (size_t i = 0; i < 37; ++i) {
        x.mutable_data<float>()[(t * 2 + b) * 37 + i] = static_cast<float>(t * 1000 + b * 100 + i);
        y.mutable_data<float>()[(t * 2 + b) * 37 + i] = static_cast<float>(source * 1000 + b * 100 + i);
      }
    }
  }
  OpTest("ReverseSequence").input(x).input<int64_t>({2}, {3, 2}).expect(y).run();
}

}  // namespace
}  // namespace tenon

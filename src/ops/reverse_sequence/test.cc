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
  EXPECT_NE(OpTest("ReverseSequence")
                .input<float>({1, 1}, {1})
                .input<int64_t>({1}, {2})
                .error()
                .find("length 2 of sequence 0 is not 0 to 1"),
            std::string::npos);
}

}  // namespace
}  // namespace tenon

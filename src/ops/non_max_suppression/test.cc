#include "op_test.h"

namespace tenon {
namespace {

OpTest suppression() {
  OpTest test("NonMaxSuppression");
  test.input<float>({1, 3, 4}, {0, 0, 1, 1, 0, 0.1f, 1, 1.1f, 0, 10, 1, 11})
      .input<float>({1, 1, 3}, {0.9f, 0.75f, 0.6f});
  return test;
}

TEST(NonMaxSuppression, Thresholds) {
  suppression().input<int64_t>({1}, {3}).input<float>({1}, {0.5f}).expect<int64_t>({2, 3}, {0, 0, 0, 0, 0, 2}).run();
  suppression()
      .input<int64_t>({}, {3})
      .input<float>({}, {0.9f})
      .expect<int64_t>({3, 3}, {0, 0, 0, 0, 0, 1, 0, 0, 2})
      .run();
  suppression()
      .input<int64_t>({1}, {3})
      .input<float>({1}, {0.5f})
      .input<float>({1}, {0.6f})
      .expect<int64_t>({1, 3}, {0, 0, 0})
      .run();
  suppression().input<int64_t>({1}, {1}).expect<int64_t>({1, 3}, {0, 0, 0}).run();
  suppression().expect<int64_t>({0, 3}, {}).run();
}

TEST(NonMaxSuppression, BatchesAndFormats) {
  OpTest("NonMaxSuppression", 10)
      .attribute("center_point_box", 1)
      .input<float>({1, 2, 4}, {0.5f, 0.5f, 1, 1, 10, 10, 1, 1})
      .input<float>({1, 2, 2}, {0.1f, 0.2f, 0.4f, 0.3f})
      .input<int64_t>({1}, {2})
      .expect<int64_t>({4, 3}, {0, 0, 1, 0, 0, 0, 0, 1, 0, 0, 1, 1})
      .run();
  OpTest("NonMaxSuppression")
      .input<float>({1, 2, 4}, {1, 1, 0, 0, 0, 1, 1, 0})
      .input<float>({1, 1, 2}, {0.5f, 0.5f})
      .input<int64_t>({1}, {2})
      .input<float>({1}, {0.5f})
      .expect<int64_t>({1, 3}, {0, 0, 0})
      .run();
}

TEST(NonMaxSuppression, Errors) {
  std::string text =
      suppression().input<int64_t>({1}, {3}).input<float>({1}, {1.5f}).expect<int64_t>({0, 3}, {}).error();
  EXPECT_EQ(text,
            "invalid-value in NonMaxSuppression 'tested' (node 0): iou_threshold is 1.5; it must be between 0 and 1");
}

}  // namespace
}  // namespace tenon

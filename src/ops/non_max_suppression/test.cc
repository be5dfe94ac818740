#include <algorithm>
#include <vector>

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

// Many boxes of several sizes, some without a width, beside the choice that every pair is compared for.
TEST(NonMaxSuppression, ManyBoxes) {
  constexpr int64_t count = 700;
  Tensor boxes(ElementType::float32, Shape{1, count, 4}), scores(ElementType::float32, Shape{1, 1, count});
  uint32_t seed = 1;
  const auto next = [&](uint32_t below) {
    return static_cast<float>((seed = seed * 1664525 + 1013904223) >> 8) / static_cast<float>(1 << 24) *
           static_cast<float>(below);
  };
  for (size_t i = 0; i < count; ++i) {
    const float size = i % 50 == 0 ? 900.0f : i % 7 == 0 ? 0.0f : 5 + next(60), x = next(1000) - 200, y = next(100);
    const float corners[] = {y, x, y + 40, x + size};
    std::ranges::copy(corners, boxes.mutable_data<float>().begin() + static_cast<ptrdiff_t>(4 * i));
    scores.mutable_data<float>()[i] = next(1);
  }
  for (float threshold : {0.0f, 0.3f, 0.7f}) {
    std::vector<size_t> order(count), chosen;
    for (size_t i = 0; i < count; ++i) order[i] = i;
    std::ranges::stable_sort(order, std::ranges::greater{}, [&](size_t i) { return scores.data<float>()[i]; });
    for (size_t i : order) {
      const auto overlaps = [&](size_t j) {
        const float *a = boxes.data<float>().data() + 4 * i, *b = boxes.data<float>().data() + 4 * j;
        const float height = std::max(0.0f, std::min(a[2], b[2]) - std::max(a[0], b[0]));
        const float width = std::max(0.0f, std::min(a[3], b[3]) - std::max(a[1], b[1]));
        const float both = (a[2] - a[0]) * (a[3] - a[1]) + (b[2] - b[0]) * (b[3] - b[1]) - height * width;
        return height * width > 0 && height * width > threshold * both;
      };
      if (std::ranges::none_of(chosen, overlaps)) chosen.push_back(i);
    }
    Tensor expected(ElementType::int64, Shape{static_cast<int64_t>(chosen.size()), 3});
    for (size_t i = 0; i < chosen.size(); ++i) {
      expected.mutable_data<int64_t>()[3 * i] = expected.mutable_data<int64_t>()[3 * i + 1] = 0;
      expected.mutable_data<int64_t>()[3 * i + 2] = static_cast<int64_t>(chosen[i]);
    }
    OpTest("NonMaxSuppression")
        .input(boxes)
        .input(scores)
        .input<int64_t>({1}, {count})
        .input(Tensor({1}, {threshold}))
        .expect(expected)
        .run();
  }
}

TEST(NonMaxSuppression, Errors) {
  std::string text =
      suppression().input<int64_t>({1}, {3}).input<float>({1}, {1.5f}).expect<int64_t>({0, 3}, {}).error();
  EXPECT_EQ(text,
            "invalid-value in NonMaxSuppression 'tested' (node 0): iou_threshold is 1.5; it must be between 0 and 1");
}

}  // namespace
}  // namespace tenon

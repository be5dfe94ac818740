#include <algorithm>
#include <numeric>
#include <random>

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

// What the specification says, pair by pair.
std::vector<int64_t> one_by_one(const std::vector<float>& boxes, const std::vector<float>& scores, float threshold) {
  std::vector<size_t> order(scores.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return scores[a] > scores[b]; });
  const auto area = [&](size_t i) { return (boxes[4 * i + 2] - boxes[4 * i]) * (boxes[4 * i + 3] - boxes[4 * i + 1]); };
  std::vector<size_t> chosen;
  std::vector<int64_t> result;
  for (size_t i : order) {
    const bool suppressed = std::any_of(chosen.begin(), chosen.end(), [&](size_t j) {
      float common = 1;
      for (size_t d : {0, 1})
        common *= std::max(
            0.0f, std::min(boxes[4 * i + d + 2], boxes[4 * j + d + 2]) - std::max(boxes[4 * i + d], boxes[4 * j + d]));
      return area(i) > 0 && area(j) > 0 && common > threshold * (area(j) + area(i) - common);
    });
    if (suppressed) continue;
    chosen.push_back(i);
    result.insert(result.end(), {0, 0, static_cast<int64_t>(i)});
  }
  return result;
}

template <typename T>
Tensor tensor(Shape shape, const std::vector<T>& values) {
  return {std::move(shape), std::span<const T>(values)};
}

TEST(NonMaxSuppression, ManyBoxes) {
  std::mt19937 random(1);
  // Sizes of boxes, and how far apart the groups are that they form.
  for (auto [size, apart] : {std::pair{0.1f, 0.0f}, {0.5f, 10.0f}, {3.0f, 0.0f}, {0.3f, 1e6f}, {0.0f, 1.0f}}) {
    for (int count : {1, 17, 700}) {
      std::uniform_real_distribution<float> unit(0, 1);
      std::vector<float> boxes, scores;
      for (int i = 0; i < count; ++i) {
        const float group = apart * static_cast<float>(i % 5), y = group + unit(random), x = group + unit(random);
        // Some are as wide as everything, some have no area.
        const float width = i % 50 == 7 ? 5 * apart + 1 : i % 50 == 9 ? 0 : size * unit(random);
        boxes.insert(boxes.end(), {y, x, y + size * unit(random), x + width});
        scores.push_back(unit(random));
      }
      for (float threshold : {0.0f, 0.3f, 0.8f}) {
        const auto expected = one_by_one(boxes, scores, threshold);
        OpTest("NonMaxSuppression")
            .input(tensor({1, count, 4}, boxes))
            .input(tensor({1, 1, count}, scores))
            .input<int64_t>({1}, {count})
            .input<float>({1}, {threshold})
            .expect(tensor({static_cast<int64_t>(expected.size()) / 3, 3}, expected))
            .run();
      }
    }
  }
}

TEST(NonMaxSuppression, BoxesWithoutASize) {
  const float infinity = std::numeric_limits<float>::infinity();
  OpTest("NonMaxSuppression")
      .input<float>({1, 4, 4}, {0, 0, 1, 1, 0, 0, infinity, 1, NAN, 0, 1, 1, 0, -infinity, 1, infinity})
      .input<float>({1, 1, 4}, {0.9f, 0.8f, 0.7f, 0.6f})
      .input<int64_t>({1}, {4})
      .input<float>({1}, {0.0f})
      .expect<int64_t>({4, 3}, {0, 0, 0, 0, 0, 1, 0, 0, 2, 0, 0, 3})
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

#include "op_test.h"

namespace tenon {
namespace {

using List = std::initializer_list<int64_t>;

Tensor vector(List list) { return Tensor(Shape{static_cast<int64_t>(list.size())}, list); }

// 0 … 5 as [2, 3].
OpTest slice(List starts, List ends, List axes = {}, List steps = {}) {
  OpTest test("Slice");
  test.input<float>({2, 3}, {0, 1, 2, 3, 4, 5}).input(vector(starts)).input(vector(ends));
  if (axes.size()) test.input(vector(axes));
  else test.no_input();
  if (steps.size()) test.input(vector(steps));
  return test;
}

TEST(Slice, Ranges) {
  slice({1, 0}, {2, 3}).expect<float>({1, 3}, {3, 4, 5}).run();
  slice({0, 1}, {2, 1000}).expect<float>({2, 2}, {1, 2, 4, 5}).run();
  slice({-2}, {-1}, {-1}).expect<float>({2, 1}, {1, 4}).run();
  slice({-1}, {INT64_MIN}, {1}, {-1}).expect<float>({2, 3}, {2, 1, 0, 5, 4, 3}).run();
  slice({-1}, {-1000}, {1}, {-2}).expect<float>({2, 2}, {2, 0, 5, 3}).run();
  slice({INT64_MAX}, {INT64_MIN}, {0}, {INT64_MIN}).expect<float>({1, 3}, {3, 4, 5}).run();
  slice({0}, {INT64_MAX}, {1}, {INT64_MAX}).expect<float>({2, 1}, {0, 3}).run();
  slice({2}, {1}, {1}).expect<float>({2, 0}, {}).run();
  slice({5}, {9}, {1}).expect<float>({2, 0}, {}).run();
  slice({-100}, {1}, {1}).expect<float>({2, 1}, {0, 3}).run();
}

TEST(Slice, Versions) {
  OpTest("Slice", 1).attribute("starts", std::vector<int64_t>{1}).attribute("ends", std::vector<int64_t>{3}).attribute("axes", std::vector<int64_t>{0})
      .input<float>({3}, {1, 2, 3}).expect<float>({2}, {2, 3}).run();
  OpTest("Slice", 10).input<std::string>({3}, {"a", "b", "c"}).constant<int32_t>({1}, {0}).constant<int32_t>({1}, {3}).no_input().constant<int32_t>({1}, {2})
      .expect<std::string>({2}, {"a", "c"}).run();
}

TEST(Slice, Errors) {
  EXPECT_NE(slice({0}, {1}, {0}, {0}).error().find("the step of axis 0 is 0"), std::string::npos);
  EXPECT_NE(slice({0}, {1}, {2}).error().find("axis 2 is out of range for rank 2"), std::string::npos);
  EXPECT_NE(slice({0}, {1, 2}, {0}).error().find("ends has 2 elements for 1 axes"), std::string::npos);
}

}  // namespace
}  // namespace tenon

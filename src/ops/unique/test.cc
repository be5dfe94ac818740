#include "op_test.h"

namespace tenon {
namespace {

TEST(Unique, Orders) {
  OpTest("Unique")
      .input<float>({5}, {2, 1, 1, 3, 2})
      .expect<float>({3}, {1, 2, 3})
      .expect<int64_t>({3}, {1, 0, 3})
      .expect<int64_t>({5}, {1, 0, 0, 2, 1})
      .expect<int64_t>({3}, {2, 2, 1})
      .run();
  OpTest("Unique", 11)
      .attribute("sorted", 0)
      .input<std::string>({3}, {"b", "a", "b"})
      .expect<std::string>({2}, {"b", "a"})
      .no_output()
      .expect<int64_t>({3}, {0, 1, 0})
      .run();
  OpTest("Unique")
      .attribute("axis", -1)
      .input<float>({2, 3}, {2, 1, 2, 4, 3, 4})
      .expect<float>({2, 2}, {1, 2, 3, 4})
      .run();
  OpTest("Unique").input<float>({3}, {NAN, 1, NAN}).expect<float>({2}, {1, NAN}).run();
  OpTest("Unique").input<float>({0}, {}).expect<float>({0}, {}).run();
}

}  // namespace
}  // namespace tenon

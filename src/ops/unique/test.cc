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

TEST(Unique, ALongEmptyAxisExceedsMemory) {
  std::string error = OpTest("Unique")
                          .attribute("axis", 0)
                          .input(Tensor(ElementType::float32, Shape{int64_t{1} << 40, 0}))
                          .expect(Tensor(ElementType::float32, Shape{1, 0}))
                          .error();
  EXPECT_TRUE(error.starts_with("out-of-memory in Unique 'tested' (node 0)")) << error;
}

}  // namespace
}  // namespace tenon

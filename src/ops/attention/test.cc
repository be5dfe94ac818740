#include "op_test.h"

namespace tenon {
namespace {

// Two queries and two keys of one head; a scale of 0 weighs all keys alike.
OpTest attention() {
  OpTest test("Attention");
  test.attribute("scale", 0.0f)
      .input<float>({1, 1, 2, 1}, {1, 2})
      .input<float>({1, 1, 2, 1}, {1, 2})
      .input<float>({1, 1, 2, 1}, {10, 20});
  return test;
}

TEST(Attention, Masks) {
  attention().expect<float>({1, 1, 2, 1}, {15, 15}).run();
  attention().attribute("is_causal", 1).expect<float>({1, 1, 2, 1}, {10, 15}).run();
  attention().attribute("left_window_size", 0).expect<float>({1, 1, 2, 1}, {15, 20}).run();
  attention().input(Tensor(Shape{2, 2}, {true, false, false, false})).expect<float>({1, 1, 2, 1}, {10, 0}).run();
  attention().input<float>({1, 1}, {3}).expect<float>({1, 1, 2, 1}, {15, 15}).run();
  attention().no_input().no_input().no_input().input<int64_t>({1}, {1}).expect<float>({1, 1, 2, 1}, {10, 10}).run();
}

TEST(Attention, PastAndHeads) {
  attention()
      .attribute("q_num_heads", 1)
      .attribute("kv_num_heads", 1)
      .attribute("is_causal", 1)
      .expect<float>({1, 1, 2, 1}, {10, 15})
      .run();
  OpTest("Attention")
      .attribute("scale", 0.0f)
      .attribute("q_num_heads", 2)
      .attribute("kv_num_heads", 1)
      .input<double>({1, 1, 2}, {1, 2})
      .input<double>({1, 1, 1}, {1})
      .input<double>({1, 1, 1}, {10})
      .no_input()
      .input<double>({1, 1, 1, 1}, {5})
      .input<double>({1, 1, 1, 1}, {30})
      .expect<double>({1, 1, 2}, {20, 20})
      .expect<double>({1, 1, 2, 1}, {5, 1})
      .expect<double>({1, 1, 2, 1}, {30, 10})
      .run();
}

TEST(Attention, Errors) {
  std::string text = OpTest("Attention")
                         .input<float>({1, 3, 1, 1}, {1, 2, 3})
                         .input<float>({1, 2, 1, 1}, {1, 2})
                         .input<float>({1, 2, 1, 1}, {1, 2})
                         .error();
  EXPECT_EQ(text.substr(0, text.find('\n')),
            "shape-mismatch in Attention 'tested' (node 0): 3 query heads cannot be shared by 2 key and value heads");
}

TEST(Attention, ScoresExceedMemory) {
  Tensor x(ElementType::float32, Shape{1, 1, 1 << 20, 1});
  std::string error = OpTest("Attention").input(x).input(x).input(x).expect(x).error();
  EXPECT_TRUE(error.starts_with("out-of-memory in Attention 'tested' (node 0)")) << error;
}

}  // namespace
}  // namespace tenon

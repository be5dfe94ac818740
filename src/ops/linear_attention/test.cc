#include "op_test.h"

namespace tenon {
namespace {

// Two steps of one head with keys of size 2 and values of size 1.
OpTest attention(const char* rule) {
  OpTest test("LinearAttention");
  test.attribute("update_rule", rule)
      .attribute("q_num_heads", 1)
      .attribute("kv_num_heads", 1)
      .attribute("scale", 1.0f)
      .input<float>({1, 2, 2}, {1, 2, 3, 4})
      .input<float>({1, 2, 2}, {1, 0, 1, 1})
      .input<float>({1, 2, 1}, {10, 20});
  return test;
}

constexpr float half = -0.69314718f;  // its logarithm

TEST(LinearAttention, UpdateRules) {
  attention("linear").expect<float>({1, 2, 1}, {10, 170}).expect<float>({1, 1, 2, 1}, {30, 20}).run();
  attention("linear")
      .input<float>({1, 1, 2, 1}, {1, 1})
      .expect<float>({1, 2, 1}, {13, 177})
      .expect<float>({1, 1, 2, 1}, {31, 21})
      .run();
  attention("gated")
      .no_input()
      .input<float>({1, 2, 1}, {0, half})
      .expect<float>({1, 2, 1}, {10, 155})
      .expect<float>({1, 1, 2, 1}, {25, 20})
      .run();
  attention("gated")
      .input<float>({1, 1, 2, 1}, {4, 4})
      .input<float>({1, 2, 2}, {half, 0, 0, half})
      .expect<float>({1, 2, 1}, {20, 184})
      .expect<float>({1, 1, 2, 1}, {32, 22})
      .run();
  attention("delta")
      .no_input()
      .no_input()
      .input<float>({1, 2, 1}, {1, 0.5f})
      .expect<float>({1, 2, 1}, {10, 65})
      .expect<float>({1, 1, 2, 1}, {15, 5})
      .run();
  attention("gated_delta")
      .no_input()
      .input<float>({1, 2, 1}, {0, half})
      .input<float>({1, 2, 1}, {1, 0.5f})
      .expect<float>({1, 2, 1}, {10, 67.5f})
      .expect<float>({1, 1, 2, 1}, {12.5f, 7.5f})
      .run();
}

TEST(LinearAttention, HeadsShareKeys) {
  OpTest("LinearAttention")
      .attribute("update_rule", "delta")
      .attribute("q_num_heads", 4)
      .attribute("kv_num_heads", 2)
      .input<float>({1, 1, 4}, {1, 2, 3, 4})
      .input<float>({1, 1, 2}, {1, 2})
      .input<float>({1, 1, 2}, {10, 100})
      .no_input()
      .no_input()
      .input<float>({1, 1, 1}, {0.5f})
      .expect<float>({1, 1, 4}, {5, 10, 300, 400})
      .expect<float>({1, 2, 1, 1}, {5, 100})
      .run();
}

TEST(LinearAttention, EmptyBatchOfAnySize) {
  constexpr int64_t many = int64_t{1} << 30;
  OpTest("LinearAttention")
      .attribute("update_rule", "linear")
      .attribute("q_num_heads", 1)
      .attribute("kv_num_heads", 1)
      .input<float>({many, 0, 0}, {})
      .input<float>({many, 0, 0}, {})
      .input<float>({many, 0, 4}, {})
      .expect<float>({many, 0, 4}, {})
      .expect<float>({many, 1, 0, 4}, {})
      .run();
}

TEST(LinearAttention, Types) {
  OpTest("LinearAttention")
      .attribute("update_rule", "linear")
      .attribute("q_num_heads", 1)
      .attribute("kv_num_heads", 1)
      .input<float16>({1, 1, 1}, {float16(2)})
      .input<float16>({1, 1, 1}, {float16(3)})
      .input<float16>({1, 1, 1}, {float16(4)})
      .input<float>({1, 1, 1, 1}, {1})
      .expect<float16>({1, 1, 1}, {float16(26)})
      .expect<float>({1, 1, 1, 1}, {13})
      .run();
  OpTest("LinearAttention")
      .attribute("update_rule", "linear")
      .attribute("q_num_heads", 1)
      .attribute("kv_num_heads", 1)
      .input<bfloat16>({1, 1, 1}, {bfloat16(2)})
      .input<bfloat16>({1, 1, 1}, {bfloat16(3)})
      .input<bfloat16>({1, 1, 1}, {bfloat16(4)})
      .expect<bfloat16>({1, 1, 1}, {bfloat16(24)})
      .expect<bfloat16>({1, 1, 1, 1}, {bfloat16(12)})
      .run();
}

TEST(LinearAttention, Errors) {
  auto contains = [](const std::string& text, const char* part) {
    EXPECT_NE(text.find(part), std::string::npos) << text;
  };
  contains(attention("square").error(),
           "update_rule is 'square'; it may be 'linear', 'gated', 'delta' or 'gated_delta'");
  contains(attention("gated").error(), "update_rule 'gated' needs decay");
  contains(attention("delta").no_input().input<float>({1, 2, 1}, {1, 1}).input<float>({1, 2, 1}, {1, 1}).error(),
           "update_rule 'delta' takes no decay");
  contains(attention("gated").no_input().input<float>({1, 2, 3}, {1, 1, 1, 1, 1, 1}).error(),
           "axis 2 of decay, unless it is kv_num_heads, and that of key must be equal: 3 against 2");
  contains(attention("linear").input<float>({1, 1, 1, 1}, {1}).error(), "axis 2 of past_state");
  contains(OpTest("LinearAttention")
               .attribute("q_num_heads", 3)
               .attribute("kv_num_heads", 2)
               .input<float>({1, 1, 1}, {1})
               .input<float>({1, 1, 1}, {1})
               .input<float>({1, 1, 1}, {1})
               .input<float>({1, 1, 1, 1}, {1})
               .input<float>({1, 1, 1}, {1})
               .input<float>({1, 1, 1}, {1})
               .error(),
           "q_num_heads, 3, must be a positive multiple of kv_num_heads, 2");
}

}  // namespace
}  // namespace tenon

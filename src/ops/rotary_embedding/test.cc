#include "op_test.h"

namespace tenon {
namespace {

TEST(RotaryEmbedding, Layouts) {
  OpTest("RotaryEmbedding")
      .input<float>({1, 1, 1, 4}, {1, 2, 3, 4})
      .input<float>({2, 2}, {1, 1, 0, 0})
      .input<float>({2, 2}, {0, 0, 1, 1})
      .input<int64_t>({1, 1}, {1})
      .expect<float>({1, 1, 1, 4}, {-3, -4, 1, 2})
      .run();
  OpTest("RotaryEmbedding")
      .attribute("interleaved", 1)
      .input<float>({1, 1, 1, 4}, {1, 2, 3, 4})
      .input<float>({1, 1, 2}, {0, 0})
      .input<float>({1, 1, 2}, {1, 1})
      .expect<float>({1, 1, 1, 4}, {-2, 1, -4, 3})
      .run();
  OpTest("RotaryEmbedding")
      .attribute("num_heads", 2)
      .attribute("rotary_embedding_dim", 2)
      .input<float>({1, 1, 6}, {1, 2, 3, 4, 5, 6})
      .input<float>({1, 1, 1}, {0})
      .input<float>({1, 1, 1}, {1})
      .expect<float>({1, 1, 6}, {-2, 1, 3, -5, 4, 6})
      .run();
}

TEST(RotaryEmbedding, HeadsOfTheirOwnAndCounted) {
  OpTest("RotaryEmbedding")
      .attribute("num_heads", 2)
      .input<float>({1, 2, 2, 2}, {1, 2, 3, 4, 5, 6, 7, 8})
      .input<float>({1, 2, 1}, {1, 0})
      .input<float>({1, 2, 1}, {0, 1})
      .expect<float>({1, 2, 2, 2}, {1, 2, -4, 3, 5, 6, -8, 7})
      .run();
}

TEST(RotaryEmbedding, Errors) {
  for (int64_t position : {7, -1}) {
    EXPECT_EQ(OpTest("RotaryEmbedding")
                  .input<float>({1, 1, 1, 2}, {1, 2})
                  .input<float>({1, 1}, {1})
                  .input<float>({1, 1}, {0})
                  .input<int64_t>({1, 1}, {position})
                  .error(),
              "invalid-value in RotaryEmbedding 'tested' (node 0): position_ids has " + std::to_string(position) +
                  "; the caches have 1 positions");
  }
  std::string text = OpTest("RotaryEmbedding")
                         .input<float>({1, 1, 4}, {1, 2, 3, 4})
                         .input<float>({1, 1, 2}, {0, 0})
                         .input<float>({1, 1, 2}, {1, 1})
                         .error();
  EXPECT_NE(text.find("num_heads must be given, and at least 1, for an input of rank 3"), std::string::npos) << text;
}

}  // namespace
}  // namespace tenon

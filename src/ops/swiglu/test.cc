#include "op_test.h"

namespace tenon {
namespace {

TEST(SwiGlu, GateTimesValue) {
  OpTest("SwiGLU")
      .input<float>({2, 2}, {-1, 0, 1, 2})
      .input<float>({2, 2}, {1, 5, 2, -1})
      .expect<float>({2, 2}, {-0.26894142f, 0, 1.4621172f, -1.7615942f})
      .run();
  OpTest("SwiGLU")
      .attribute("alpha", 2.0f)
      .input<double>({1}, {1})
      .input<double>({1}, {3})
      .tolerance(1e-12, 0)
      .expect<double>({1}, {2.6423912339336468})
      .run();
}

TEST(SwiGlu, TypesAndEmpty) {
  OpTest("SwiGLU")
      .input<float16>({1}, {float16(1)})
      .input<float16>({1}, {float16(2)})
      .expect<float16>({1}, {float16(1.4621172f)})
      .run();
  OpTest("SwiGLU")
      .input<bfloat16>({}, {bfloat16(1)})
      .input<bfloat16>({}, {bfloat16(2)})
      .expect<bfloat16>({}, {bfloat16(1.4621172f)})
      .run();
  OpTest("SwiGLU").input<float>({0}, {}).input<float>({0}, {}).expect<float>({0}, {}).run();
}

TEST(SwiGlu, Errors) {
  std::string text = OpTest("SwiGLU").input<float>({2}, {1, 2}).input<float>({1}, {1}).error();
  EXPECT_NE(text.find("axis 0 of A and B"), std::string::npos) << text;
}

}  // namespace
}  // namespace tenon

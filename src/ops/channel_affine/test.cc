#include "op_test.h"

namespace tenon {
namespace {

OpTest affine() { return OpTest("ChannelAffine", 1, "tenon"); }

TEST(ChannelAffine, Plain) {
  affine()
      .input<float>({1, 2, 3}, {1, 2, 3, 4, 5, 6})
      .constant<float>({2}, {2, -1})
      .constant<float>({2}, {0.5f, 4.5f})
      .expect<float>({1, 2, 3}, {2.5f, 4.5f, 6.5f, 0.5f, -0.5f, -1.5f})
      .run();
  affine()
      .attribute("activation", "Relu")
      .input<float>({2, 2}, {1, 5, 2, 3})
      .input<float>({2}, {2, -1})
      .input<float>({2}, {0.5f, 4.5f})
      .expect<float>({2, 2}, {2.5f, 0, 4.5f, 1.5f})
      .run();
}

TEST(ChannelAffine, Blocked) {
  affine()
      .attribute("block", 8)
      .input<float>({1, 2, 1, 2, 8},
                    {1, 1, 1, 1, 1, 1, 1, 1, 2, 2, 2, 2, 2, 2, 2, 2, 1, 1, 1, 1, 1, 1, 1, 1, 2, 2, 2, 2, 2, 2, 2, 2})
      .constant<float>({10}, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9})
      .constant<float>({10}, {1, 1, 1, 1, 1, 1, 1, 1, -10, -10})
      .attribute("activation", "Clip")
      .attribute("activation_params", {-1.5f, 9.0f})
      .expect<float>({1, 2, 1, 2, 8}, {1,     2,  3, 4, 5, 6, 7, 8, 1, 3, 5, 7, 9, 9, 9, 9,
                                       -1.5f, -1, 0, 0, 0, 0, 0, 0, 6, 8, 0, 0, 0, 0, 0, 0})
      .run();
  // A block that the kernel does not take.
  affine()
      .attribute("block", 3)
      .attribute("activation", "Tanh")
      .input<float>({1, 1, 1, 1, 3}, {0, 1, 2})
      .constant<float>({3}, {1, 1, 1})
      .constant<float>({3}, {0, -1, -2})
      .expect<float>({1, 1, 1, 1, 3}, {0, 0, 0})
      .run();
}

TEST(ChannelAffine, ActivationInParts) {
  Tensor x(ElementType::float32, Shape{1, 1, 5000}), y(ElementType::float32, Shape{1, 1, 5000});
  for (size_t i = 0; i < 5000; ++i) {
    x.mutable_data<float>()[i] = static_cast<float>(i) / 1000;
    y.mutable_data<float>()[i] = std::tanh(static_cast<float>(i) / 500 - 3);
  }
  affine()
      .attribute("activation", "Tanh")
      .input(x)
      .constant<float>({1}, {2})
      .constant<float>({1}, {-3})
      .expect(y)
      .run();
}

TEST(ChannelAffine, Errors) {
  const auto first_line = [](const std::string& text) { return text.substr(0, text.find('\n')); };
  EXPECT_EQ(first_line(affine()
                           .attribute("block", 8)
                           .input(Tensor(ElementType::float32, Shape{1, 2, 1, 1, 8}))
                           .constant<float>({3}, {1, 2, 3})
                           .constant<float>({3}, {1, 2, 3})
                           .error()),
            "shape-mismatch in tenon.ChannelAffine 'tested' (node 0): the blocks of X's channels and those of scale "
            "must be equal: 2 against 1");
}

}  // namespace
}  // namespace tenon

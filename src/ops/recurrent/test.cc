#include "op_test.h"

namespace tenon {
namespace {

float sigmoid(float x) { return 1 / (1 + std::exp(-x)); }

TEST(RNN, DirectionsAndLengths) {
  // With W = R = 1 and the identity as activation, the state is the running sum.
  auto sums = [](const char* direction, int64_t opset = ops::newest_opset) {
    OpTest test("RNN", opset);
    test.attribute("hidden_size", 1)
        .attribute("direction", direction)
        .attribute("activations", std::vector<std::string>{"Affine", "affine"});
    return test;
  };
  sums("forward")
      .input<float>({3, 1, 1}, {1, 2, 3})
      .constant<float>({1, 1, 1}, {1})
      .constant<float>({1, 1, 1}, {1})
      .expect<float>({3, 1, 1, 1}, {1, 3, 6})
      .expect<float>({1, 1, 1}, {6})
      .run();
  sums("reverse")
      .input<float>({3, 1, 1}, {1, 2, 3})
      .input<float>({1, 1, 1}, {1})
      .input<float>({1, 1, 1}, {1})
      .expect<float>({3, 1, 1, 1}, {6, 5, 3})
      .expect<float>({1, 1, 1}, {6})
      .run();
  sums("bidirectional")
      .input<double>({2, 1, 1}, {1, 2})
      .input<double>({2, 1, 1}, {1, 10})
      .input<double>({2, 1, 1}, {1, 1})
      .expect<double>({2, 2, 1, 1}, {1, 30, 3, 20})
      .expect<double>({2, 1, 1}, {3, 30})
      .run();
  sums("bidirectional")
      .input<float>({2, 2, 1}, {1, 1, 2, 2})
      .input<float>({2, 1, 1}, {1, 1})
      .input<float>({2, 1, 1}, {1, 1})
      .no_input()
      .input<int32_t>({2}, {1, 2})
      .expect<float>({2, 2, 2, 1}, {1, 1, 1, 3, 0, 3, 0, 2})
      .expect<float>({2, 2, 1}, {1, 3, 1, 3})
      .run();
  // None goes on to the last step, and one has no step at all.
  sums("bidirectional")
      .input<float>({3, 3, 1}, {1, 2, 3, 4, 5, 6, 7, 8, 9})
      .input<float>({2, 1, 1}, {1, 1})
      .input<float>({2, 1, 1}, {1, 1})
      .no_input()
      .input<int32_t>({3}, {2, 1, 0})
      .expect<float>({3, 2, 3, 1}, {1, 2, 0, 5, 2, 0, 5, 0, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0})
      .expect<float>({2, 3, 1}, {5, 2, 0, 5, 2, 0})
      .run();
  sums("forward")
      .input<float>({1, 2, 1}, {1, 2})
      .constant<float>({1, 1, 1}, {1})
      .constant<float>({1, 1, 1}, {1})
      .no_input()
      .input<int32_t>({2}, {0, 0})
      .input<float>({1, 2, 1}, {3, 4})
      .expect<float>({1, 1, 2, 1}, {0, 0})
      .expect<float>({1, 2, 1}, {3, 4})
      .run();
  sums("forward")
      .attribute("layout", 1)
      .input<float>({2, 2, 1}, {1, 2, 3, 4})
      .input<float>({1, 1, 1}, {1})
      .input<float>({1, 1, 1}, {1})
      .input<float>({1, 2}, {0.5f, 0.5f})
      .no_input()
      .input<float>({2, 1, 1}, {10, 20})
      .expect<float>({2, 2, 1, 1}, {12, 15, 24, 29})
      .expect<float>({2, 1, 1}, {15, 29})
      .run();
  sums("forward", 1)
      .attribute("output_sequence", 1)
      .input<float>({1, 1, 1}, {1})
      .input<float>({1, 1, 1}, {1})
      .input<float>({1, 1, 1}, {1})
      .expect<float>({1, 1, 1, 1}, {1})
      .run();
}

TEST(RNN, ActivationsAndClip) {
  auto one = [](const char* activation, float expected) {
    OpTest("RNN")
        .attribute("activations", std::vector<std::string>{activation})
        .attribute("clip", 2.0f)
        .input<float>({1, 1, 1}, {-3})
        .input<float>({1, 1, 1}, {1})
        .input<float>({1, 1, 1}, {0})
        .no_output()
        .expect<float>({1, 1, 1}, {expected})
        .run();
  };
  one("Tanh", std::tanh(-2.f));
  one("Sigmoid", sigmoid(-2));
  one("Relu", 0);
  one("LeakyRelu", -0.02f);
  one("ThresholdedRelu", 0);
  one("ScaledTanh", std::tanh(-2.f));
  one("HardSigmoid", 0.1f);
  one("Elu", std::exp(-2.f) - 1);
  one("Softsign", -2 / 3.f);
  one("Softplus", std::log1p(std::exp(-2.f)));
}

TEST(GRU, Reset) {
  const float z = sigmoid(1), r = sigmoid(2);
  auto test = [] {
    OpTest t("GRU");
    t.input<float>({1, 1, 1}, {1})
        .constant<float>({1, 3, 1}, {1, 2, 3})
        .constant<float>({1, 3, 1}, {0, 0, 1})
        .input<float>({1, 6}, {0, 0, 0, 0, 0, 0.5f});
    t.no_input().input<float>({1, 1, 1}, {2}).no_output();
    return t;
  };
  test().expect<float>({1, 1, 1}, {(1 - z) * std::tanh(3 + 2 * r + 0.5f) + z * 2}).run();
  test()
      .attribute("linear_before_reset", 1)
      .expect<float>({1, 1, 1}, {(1 - z) * std::tanh(3 + r * 2.5f) + z * 2})
      .run();
}

TEST(LSTM, PeepholesAndCoupling) {
  auto test = [] {
    OpTest t("LSTM");
    t.input<float>({1, 1, 1}, {1})
        .constant<float>({1, 4, 1}, {1, 2, 3, 4})
        .constant<float>({1, 4, 1}, {0, 0, 0, 1})
        .no_input()
        .no_input();
    t.input<float>({1, 1, 1}, {0.5f}).input<float>({1, 1, 1}, {2});
    return t;
  };
  float c = sigmoid(3) * 2 + sigmoid(1) * std::tanh(4.5f);
  test().no_output().expect<float>({1, 1, 1}, {sigmoid(2) * std::tanh(c)}).expect<float>({1, 1, 1}, {c}).run();
  float coupled = (1 - sigmoid(1)) * 2 + sigmoid(1) * std::tanh(4.5f);
  test().attribute("input_forget", 1).no_output().no_output().expect<float>({1, 1, 1}, {coupled}).run();
  float peeping = sigmoid(3 + 0.3f * 2) * 2 + sigmoid(1 + 0.1f * 2) * std::tanh(4.5f);
  test()
      .input<float>({1, 3}, {0.1f, 0.2f, 0.3f})
      .no_output()
      .expect<float>({1, 1, 1}, {sigmoid(2 + 0.2f * peeping) * std::tanh(peeping)})
      .expect<float>({1, 1, 1}, {peeping})
      .run();
}

TEST(LSTM, Errors) {
  auto first_line = [](std::string text) { return text.substr(0, text.find('\n')); };
  EXPECT_EQ(
      first_line(OpTest("LSTM")
                     .input<float>({1, 1, 1}, {1})
                     .input<float>({1, 3, 1}, {1, 2, 3})
                     .input<float>({1, 4, 1}, {0, 0, 0, 1})
                     .error()),
      "shape-mismatch in LSTM 'tested' (node 0): axis 1 of W and what the other inputs say must be equal: 3 against 4");
  EXPECT_EQ(first_line(OpTest("RNN")
                           .input<float>({1, 1, 1}, {1})
                           .input<float>({1, 1, 1}, {1})
                           .input<float>({1, 1, 1}, {1})
                           .no_input()
                           .input<int32_t>({1}, {2})
                           .expect<float>({1, 1, 1, 1}, {0})
                           .error()),
            "invalid-value in RNN 'tested' (node 0): sequence_lens[0] is 2; the sequences have 1 steps");
  EXPECT_EQ(first_line(OpTest("RNN")
                           .attribute("activations", std::vector<std::string>{"Cosine"})
                           .input<float>({1, 1, 1}, {1})
                           .input<float>({1, 1, 1}, {1})
                           .input<float>({1, 1, 1}, {1})
                           .error()),
            "invalid-attribute in RNN 'tested' (node 0): 'Cosine' is none of the activations Sigmoid, Tanh, Relu, "
            "Affine, LeakyRelu, "
            "ThresholdedRelu, ScaledTanh, HardSigmoid, Elu, Softsign and Softplus");
}

}  // namespace
}  // namespace tenon

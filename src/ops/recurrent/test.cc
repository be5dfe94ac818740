#include "model_builder.h"
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

// A node whose tensors are of one type.
struct Network {
  std::string op;
  int64_t gates, directions, batch, hidden;
  bool linear_before_reset, is_constant;
};

NamedValues outputs_of(const Network& network, ElementType type, int threads) {
  const auto [op, gates, directions, batch, hidden, linear_before_reset, is_constant] = network;
  const int64_t steps = 5, inputs = 7, rows = gates * hidden;
  const auto values = [&](Shape shape, double scale) {
    Tensor tensor(type, std::move(shape));
    for (int64_t i = 0; i < tensor.elements(); ++i) {
      const double value = scale * std::sin(1.7 * static_cast<double>(i) + static_cast<double>(i % 11));
      if (type == ElementType::float64)
        tensor.mutable_data<double>()[static_cast<size_t>(i)] = value;
      else
        tensor.mutable_data<float>()[static_cast<size_t>(i)] = static_cast<float>(value);
    }
    return tensor;
  };
  const std::pair<std::string, Tensor> weights[] = {{"w", values({directions, rows, inputs}, 0.5)},
                                                    {"r", values({directions, rows, hidden}, 0.2)},
                                                    {"b", values({directions, 2 * rows}, 0.3)}};
  NamedValues feeds = {{"x", values({steps, batch, inputs}, 1)}, {"h", values({directions, batch, hidden}, 0.4)}};
  Tensor lengths(ElementType::int32, {batch});
  for (int64_t i = 0; i < batch; ++i)
    lengths.mutable_data<int32_t>()[static_cast<size_t>(i)] = static_cast<int32_t>(i == 1 ? 3 : steps);
  ModelBuilder model;
  for (const auto& [name, tensor] : weights) {
    if (is_constant)
      model.initializer(name, tensor);
    else
      feeds.emplace(name, tensor);
  }
  for (const auto& [name, value] : feeds) model.input(name, type);
  model.initializer("lengths", lengths);
  ir::Node& node = model.node(op, {"x", "w", "r", "b", "lengths", "h"}, {"y", "y_h"});
  node.set_attribute(ir::Attribute("hidden_size", hidden));
  if (directions == 2) node.set_attribute(ir::Attribute("direction", std::string("bidirectional")));
  if (linear_before_reset) node.set_attribute(ir::Attribute("linear_before_reset", int64_t{1}));
  model.output("y").output("y_h");
  SessionOptions options;
  options.threads = threads;
  return model.session(options).run(feeds);
}

// Threads share the units of a step; float64 has one piece of weights and one thread for each direction.
TEST(Recurrent, ThreadsShareSteps) {
  const Network networks[] = {{"LSTM", 4, 1, 1, 150, false, true},  {"LSTM", 4, 2, 2, 131, false, true},
                              {"LSTM", 4, 1, 20, 96, false, false}, {"GRU", 3, 1, 1, 170, true, true},
                              {"GRU", 3, 2, 3, 170, false, true},   {"GRU", 3, 1, 2, 161, false, false},
                              {"RNN", 1, 1, 1, 300, false, true},   {"LSTM", 4, 1, 1, 5, false, true}};
  for (const Network& network : networks) {
    const auto expected = outputs_of(network, ElementType::float64, 1);
    for (int threads : {1, 2, 5}) {
      for (const auto& [name, value] : outputs_of(network, ElementType::float32, threads)) {
        const auto computed = value.tensor().data<float>();
        const auto exact = expected.at(name).tensor().data<double>();
        ASSERT_EQ(computed.size(), exact.size());
        for (size_t i = 0; i < exact.size(); ++i)
          ASSERT_NEAR(computed[i], exact[i], 2e-5) << network.op << " " << network.hidden << " " << threads << " " << i;
      }
    }
  }
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

#include "op_test.h"

namespace tenon {
namespace {

// x op constant, as the graph of a modifier.
std::unique_ptr<ir::Graph> modifier(const char* op, Tensor constant, ElementType type = ElementType::float32) {
  auto graph = std::make_unique<ir::Graph>();
  graph->name = "modifier";
  ir::Value& x = graph->add_value(std::string("x_") + op);
  x.type = ir::Type::tensor(type);
  graph->add_input(x);
  ir::Node& node = graph->add_node(op);
  node.add_input(&x);
  node.add_input(&graph->add_constant(std::move(constant), std::string("c_") + op));
  ir::Value& y = graph->add_value(std::string("y_") + op);
  node.add_output(&y);
  graph->add_output(y);
  return graph;
}

template <typename T>
OpTest flex() {
  OpTest test("FlexAttention", 1, "ai.onnx.preview");
  test.input(Tensor(Shape{1, 1, 1, 1}, {T(1)}))
      .input(Tensor(Shape{1, 1, 2, 1}, {T(0), T(1)}))
      .input(Tensor(Shape{1, 1, 2, 2}, {T(1), T(2), T(3), T(4)}));
  return test;
}

// Scores 0 and 1 are weights 0.26894142 and 0.73105858.
TEST(FlexAttention, Plain) {
  flex<float>().expect<float>({1, 1, 1, 2}, {2.4621172f, 3.4621172f}).run();
  flex<double>().tolerance(1e-12, 0).expect<double>({1, 1, 1, 2}, {2.46211715726001, 3.46211715726001}).run();
  flex<float>().attribute("scale", 0.0f).expect<float>({1, 1, 1, 2}, {2, 3}).run();
  flex<float>()
      .attribute("softmax_precision", static_cast<int64_t>(ElementType::float64))
      .expect<float>({1, 1, 1, 2}, {2.4621172f, 3.4621172f})
      .run();
  flex<float16>().expect<float16>({1, 1, 1, 2}, {float16(2.4621172f), float16(3.4621172f)}).run();
  flex<bfloat16>().expect<bfloat16>({1, 1, 1, 2}, {bfloat16(2.4621172f), bfloat16(3.4621172f)}).run();
}

TEST(FlexAttention, Modifiers) {
  flex<float>()
      .attribute("score_mod", modifier("Mul", Tensor::scalar(0.0f)))
      .attribute("prob_mod", modifier("Add", Tensor::scalar(1.0f)))
      .expect<float>({1, 1, 1, 2}, {6, 9})
      .run();
  flex<float16>()
      .attribute("softmax_precision", static_cast<int64_t>(ElementType::float16))
      .attribute("score_mod", modifier("Mul", Tensor::scalar(float16(0)), ElementType::float16))
      .expect<float16>({1, 1, 1, 2}, {float16(2), float16(3)})
      .run();
}

TEST(FlexAttention, HeadsShareKeys) {
  OpTest("FlexAttention", 1, "ai.onnx.preview")
      .input<float>({1, 4, 1, 1}, {1, 2, 3, 4})
      .input<float>({1, 2, 1, 1}, {1, 1})
      .input<float>({1, 2, 1, 1}, {5, 6})
      .expect<float>({1, 4, 1, 1}, {5, 5, 6, 6})
      .run();
  OpTest("FlexAttention", 1, "ai.onnx.preview")
      .input<float>({1, 1, 1, 1}, {1})
      .input<float>({1, 1, 0, 1}, {})
      .input<float>({1, 1, 0, 1}, {})
      .expect<float>({1, 1, 1, 1}, {0})
      .run();
}

TEST(FlexAttention, Errors) {
  auto contains = [](const std::string& text, const char* part) {
    EXPECT_NE(text.find(part), std::string::npos) << text;
  };
  contains(flex<float>().attribute("score_mod", modifier("Greater", Tensor::scalar(0.0f))).error(),
           "score_mod is given tensor(float) [1, 1, 1, 2] and returns tensor(bool) [1, 1, 1, 2]; they must be equal");
  contains(flex<float>().attribute("prob_mod", modifier("Add", Tensor(Shape{2, 1, 1, 1}, {1.0f, 2.0f}))).error(),
           "prob_mod is given tensor(float) [1, 1, 1, 2] and returns tensor(float) [2, 1, 1, 2]; they must be equal");
  contains(flex<float>().attribute("softmax_precision", 7).error(), "softmax_precision int64 is no type of floats");
  contains(OpTest("FlexAttention", 1, "ai.onnx.preview")
               .input<float>({1, 3, 1, 1}, {1, 2, 3})
               .input<float>({1, 2, 1, 1}, {1, 1})
               .input<float>({1, 2, 1, 1}, {5, 6})
               .error(),
           "3 query heads cannot share 2 key and value heads");
}

}  // namespace
}  // namespace tenon

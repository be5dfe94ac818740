#include <numeric>

#include "model_builder.h"
#include "op_test.h"

namespace tenon {
namespace {

// A model whose nodes compute "y" from "a" and "b"; its outputs are the gradients da and db.
struct GradientModel : ModelBuilder {
  GradientModel() { model().opset_imports.set("ai.onnx.preview.training", 1); }

  ir::Node& gradient(std::vector<std::string> xs, const std::vector<std::string>& outputs, const std::string& y = "y",
                     std::vector<std::string> fed = {}) {
    ir::Node& node = this->node("Gradient", fed.empty() ? xs : fed, outputs, "gradient", "ai.onnx.preview.training");
    node.set_attribute(ir::Attribute("xs", std::move(xs)));
    node.set_attribute(ir::Attribute("y", y));
    for (const std::string& name : outputs) output(name);
    return node;
  }
  Tensor run(const NamedValues& inputs, const std::string& name) { return session().run(inputs).at(name).tensor(); }
};

Tensor numbers(Shape shape, double first, double step) {
  Tensor tensor(ElementType::float64, std::move(shape));
  auto data = tensor.mutable_data<double>();
  for (size_t i = 0; i < data.size(); ++i) data[i] = first + step * std::sin(static_cast<double>(i + 1));
  return tensor;
}

// Compares with differences of the function itself, weighted so that the elements of y count differently.
void expect_numerical(const std::vector<std::string>& steps, Tensor a, Tensor b,
                      std::initializer_list<std::pair<const char*, std::vector<int64_t>>> lists = {},
                      bool known_shapes = true) {
  SCOPED_TRACE(steps.back());
  GradientModel model;
  for (const auto& [name, tensor] : {std::pair("a", a), std::pair("b", b)}) {
    SymbolicShape shape = symbolic(tensor.shape());
    if (!known_shapes) std::ranges::fill(shape, Dim::unknown());
    model.input(name, ElementType::float64, shape);
  }
  std::string last = "a";
  for (const std::string& step : steps) {
    const std::string op = step.substr(0, step.find(' ')), result = last + "_" + op;
    std::vector<std::string> inputs{last};
    if (step.ends_with(" b")) inputs.push_back("b");
    if (step.starts_with("b ")) inputs.insert(inputs.begin(), "b");
    ir::Node& node = model.node(step.starts_with("b ") ? step.substr(2) : op, inputs, {result});
    for (const auto& [name, list] : lists) {
      if (std::string(name) == "perm") {
        node.set_attribute(ir::Attribute(name, list));
      } else if (std::string(name) == op || op + "/axes" == name) {
        model.initializer(result + "/list", Tensor(Shape{static_cast<int64_t>(list.size())}, std::span(list)));
        node.add_input(&model.value(result + "/list"));
        if (op == "ReduceSum") node.set_attribute(ir::Attribute("keepdims", int64_t{0}));
      }
    }
    last = result;
  }
  model.node("Tanh", {last}, {"bent"});
  model.node("Exp", {"bent"}, {"y"});
  model.output("y");
  model.gradient({"a", "b"}, {"da", "db"});
  Session session = model.session();
  auto sum = [&](const NamedValues& inputs) {
    double total = 0;
    const NamedValues outputs = session.run(inputs);
    for (double value : outputs.at("y").tensor().data<double>()) total += value;
    return total;
  };
  NamedValues inputs{{"a", a}, {"b", b}}, results = session.run(inputs);
  for (const auto& [name, output] : {std::pair("a", "da"), std::pair("b", "db")}) {
    const Tensor x = inputs.at(name).tensor(), dx = results.at(output).tensor();
    ASSERT_EQ(x.shape(), dx.shape());
    for (size_t i = 0; i < x.data<double>().size(); ++i) {
      constexpr double step = 1e-5;
      NamedValues above = inputs, below = inputs;
      above[name] = x.clone();
      below[name] = x.clone();
      above[name].tensor().mutable_data<double>()[i] += step;
      below[name].tensor().mutable_data<double>()[i] -= step;
      EXPECT_NEAR(dx.data<double>()[i], (sum(above) - sum(below)) / (2 * step), 1e-6) << name << "[" << i << "]";
    }
  }
}

TEST(Gradient, Elementwise) {
  Tensor a = numbers({2, 3}, 2, 0.5), b = numbers({2, 3}, 1.5, 0.3);
  for (const char* op : {"Add b", "Sub b", "Mul b", "Div b", "b Sub", "b Div"}) expect_numerical({op}, a, b);
  for (const char* op : {"Neg", "Identity", "Relu", "Exp", "Log", "Sqrt", "Sigmoid", "Tanh"})
    expect_numerical({op, "Mul b"}, numbers({4}, 0.6, 0.3), numbers({4}, 1, 0.5));
  expect_numerical({"Relu"}, numbers({6}, 0, 1), b);
}

TEST(Gradient, Broadcasting) {
  Tensor a = numbers({2, 3}, 2, 0.5);
  for (bool known : {true, false}) {
    for (const Shape& shape : {Shape{}, Shape{1}, Shape{3}, Shape{2, 1}, Shape{2, 2, 3}, Shape{3, 1, 1}}) {
      expect_numerical({"Mul b"}, a, numbers(shape, 1.5, 0.3), {}, known);
      expect_numerical({"b Sub"}, a, numbers(shape, 1.5, 0.3), {}, known);
    }
  }
}

TEST(Gradient, MatMul) {
  auto expect = [](Shape a, Shape b) {
    expect_numerical({"MatMul b"}, numbers(a, 0, 0.5), numbers(b, 0.2, 0.3));
    expect_numerical({"MatMul b"}, numbers(a, 0, 0.5), numbers(b, 0.2, 0.3), {}, false);
  };
  expect({2, 3}, {3, 4});
  expect({2, 2, 3}, {3, 2});
  expect({2, 3}, {2, 3, 2});
  expect({1, 2, 3}, {2, 3, 1});
  expect({3}, {3});
  expect({3}, {2, 3, 2});
  expect({2, 2, 3}, {3});
}

TEST(Gradient, Shapes) {
  Tensor a = numbers({2, 3}, 1, 0.5), b = numbers({1}, 1, 0);
  expect_numerical({"Transpose"}, a, b);
  expect_numerical({"Transpose"}, numbers({2, 3, 2}, 1, 0.5), b, {{"perm", {1, 2, 0}}});
  expect_numerical({"Reshape"}, a, b, {{"Reshape", {3, 2}}});
  expect_numerical({"ReduceSum"}, a, b);
  expect_numerical({"ReduceSum"}, a, b, {{"ReduceSum", {-1}}});
  expect_numerical({"Unsqueeze", "Flatten"}, a, b, {{"Unsqueeze", {0}}});
  expect_numerical({"Squeeze"}, numbers({2, 1}, 1, 0.5), b);
}

TEST(Gradient, OfAGradient) {
  GradientModel model;
  model.input("a", ElementType::float32, SymbolicShape{2});
  model.node("Mul", {"a", "a"}, {"square"});
  model.node("Mul", {"square", "a"}, {"y"});
  model.gradient({"a"}, {"first"});
  model.gradient({"a"}, {"second"}, "first");
  model.gradient({"a"}, {"third"}, "second");
  expect_near(model.run({{"a", Tensor(Shape{2}, {2.0f, 3.0f})}}, "second"), Tensor(Shape{2}, {12.0f, 18.0f}), 1e-6, 0,
              "second");
  expect_near(model.run({{"a", Tensor(Shape{2}, {2.0f, 3.0f})}}, "third"), Tensor(Shape{2}, {6.0f, 6.0f}), 1e-6, 0,
              "third");
}

TEST(Gradient, OfAGradientOfAnyRule) {
  for (const char* op : {"Relu", "Exp", "Log", "Sqrt", "Sigmoid", "Tanh", "ReduceSum", "Transpose"}) {
    GradientModel model;
    model.input("a", ElementType::float64, SymbolicShape{2, 2});
    model.node("MatMul", {"a", "a"}, {"product"});
    model.node("Div", {"product", "a"}, {"ratio"});
    model.node(op, {"ratio"}, {"y"});
    model.gradient({"a"}, {"first"});
    model.gradient({"a"}, {"second"}, "first");
    Tensor a = numbers({2, 2}, 1, 0.3);
    auto total = [&](double shift, const char* output) {
      Tensor moved = a.clone();
      for (double& value : moved.mutable_data<double>()) value += shift;
      const Tensor result = model.run({{"a", moved}}, output);
      auto data = result.data<double>();
      return std::accumulate(data.begin(), data.end(), 0.0);
    };
    EXPECT_NEAR(total(0, "second"), (total(1e-5, "first") - total(-1e-5, "first")) / 2e-5, 1e-5) << op;
  }
}

TEST(Gradient, AtAnotherPlace) {
  GradientModel model;
  model.input("a", ElementType::float32, SymbolicShape{1}).input("elsewhere", ElementType::float32, SymbolicShape{2});
  model.gradient({"h"}, {"dh"}, "y", {"elsewhere"});  // before the nodes that it differentiates
  model.node("Neg", {"a"}, {"h"});
  model.node("Mul", {"h", "h"}, {"y"});
  model.output("y");
  expect_near(model.run({{"a", Tensor(Shape{1}, {5.0f})}, {"elsewhere", Tensor(Shape{2}, {2.0f, 3.0f})}}, "dh"),
              Tensor(Shape{2}, {4.0f, 6.0f}), 1e-6, 0, "dh");
}

TEST(Gradient, OfWhatDoesNotDepend) {
  GradientModel model;
  model.input("a", ElementType::float32, SymbolicShape{2}).input("b", ElementType::float32, SymbolicShape{2});
  model.node("Cos", {"b"}, {"cosine"});
  model.node("Identity", {"cosine"}, {"y"});
  ir::Node& node = model.gradient({"a"}, {"da"}, "y", {"a", "b"});
  node.set_attribute(ir::Attribute("zs", std::vector<std::string>{"b"}));
  Tensor x(Shape{2}, {1.0f, 2.0f});
  expect_near(model.run({{"a", x}, {"b", x}}, "da"), Tensor(Shape{2}, {0.0f, 0.0f}), 0, 0, "da");
}

TEST(Gradient, Errors) {
  auto contains = [](const std::string& text, const char* part) {
    EXPECT_NE(text.find(part), std::string::npos) << text;
  };
  auto model = [](const char* op, ElementType type = ElementType::float32) {
    GradientModel result;
    result.input("a", type, SymbolicShape{2});
    result.node(op, {"a"}, {"y"}, "bend");
    return result;
  };
  GradientModel cosine = model("Cos");
  cosine.gradient({"a"}, {"da"});
  contains(cosine.load_error(), "Cos 'bend' (node 0) cannot be differentiated");
  contains(cosine.load_error(), "operators that can: Add, Div, Exp,");
  GradientModel unknown = model("Neg");
  unknown.gradient({"a"}, {"da"}, "z");
  contains(unknown.load_error(), "the graph has no tensor 'z' to differentiate");
  GradientModel whole = model("Neg", ElementType::int32);
  whole.gradient({"a"}, {"da"});
  contains(whole.load_error(), "only floating-point tensors are differentiated");
  GradientModel circle = model("Neg");
  circle.node("Add", {"y", "da"}, {"sum"});
  circle.gradient({"a"}, {"da"}, "sum");
  contains(circle.load_error(), "cannot be differentiated");
  GradientModel inputs = model("Neg");
  inputs.gradient({"a", "y"}, {"da"}, "y", {"a"});
  contains(inputs.load_error(), "it has 1 inputs, but xs and zs name 2 tensors");
}

}  // namespace
}  // namespace tenon

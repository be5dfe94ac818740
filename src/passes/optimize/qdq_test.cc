#include <gtest/gtest.h>

#include <random>

#include "ops/dispatch.h"
#include "pass_test.h"

namespace tenon {
namespace {

template <typename T>
Tensor random_tensor(Shape shape, int low, int high, uint32_t seed, float factor = 1) {
  std::mt19937 random(seed);
  Tensor tensor(element_type_of<T>, std::move(shape));
  for (T& item : tensor.mutable_data<T>())
    item = static_cast<T>(static_cast<float>(low + static_cast<int>(random() % static_cast<uint32_t>(high - low + 1))) *
                          factor);
  return tensor;
}

Tensor scalar(float value) { return Tensor(Shape{}, {value}); }

// A model whose steps are quantized: each value NAME is the dequantized NAME_q.
struct Model : ModelBuilder {
  // Codes of a computed value, and what they stand for.
  void quantize(const std::string& from, const std::string& to, float scale, Tensor zero) {
    initializer(to + "_scale", scalar(scale)).initializer(to + "_zero", std::move(zero));
    node("QuantizeLinear", {from, to + "_scale", to + "_zero"}, {to + "_q"});
    node("DequantizeLinear", {to + "_q", to + "_scale", to + "_zero"}, {to});
  }
  // A constant; without zero points if these hold nothing.
  void weights(const std::string& to, Tensor codes, Tensor scale, std::optional<Tensor> zero, int64_t axis = 0) {
    initializer(to + "_q", std::move(codes)).initializer(to + "_scale", std::move(scale));
    std::vector<std::string> inputs = {to + "_q", to + "_scale"};
    if (zero) {
      initializer(to + "_zero", std::move(*zero));
      inputs.push_back(to + "_zero");
    }
    node("DequantizeLinear", inputs, {to}).set_attribute({"axis", axis});
  }
};

uint8_t byte(int value) { return static_cast<uint8_t>(value); }
Tensor zero_of(uint8_t value) { return Tensor(Shape{}, {value}); }
Tensor signed_zero_of(int8_t value) { return Tensor(Shape{}, {value}); }

// The operators of the graph at level extended, and the most that outputs differ from those at level none.
struct Outcome {
  std::vector<std::string> ops;
  double most = 0;
};

Outcome compare(const ModelBuilder& b) {
  SessionOptions options;
  options.level = OptimizationLevel::none;
  Session plain = b.session(options);
  options.level = OptimizationLevel::extended;
  Session integers = b.session(options);
  NamedValues inputs;
  for (const ValueInfo& info : plain.inputs()) {
    Shape shape;
    for (const std::string& size : info.shape) shape.push_back(std::stoll(size));
    inputs.emplace(info.name, random_tensor<float>(shape, -100, 100, 7, 0.03f));
  }
  NamedValues expected = plain.run(inputs), actual = integers.run(inputs);
  Outcome outcome;
  for (const auto& [name, value] : expected) {
    const Tensor &a = value.tensor(), &c = actual.at(name).tensor();
    EXPECT_EQ(a.shape(), c.shape());
    EXPECT_EQ(a.type(), c.type());
    ops::dispatch<float, int8_t, uint8_t>(a.type(), [&]<typename T>() {
      double largest = 0;
      for (size_t i = 0; i < a.data<T>().size(); ++i) {
        outcome.most = std::max(outcome.most, std::abs(double(a.data<T>()[i]) - double(c.data<T>()[i])));
        largest = std::max(largest, std::abs(double(a.data<T>()[i])));
      }
      EXPECT_GT(largest, 0) << "nothing to compare";
    });
  }
  for (const NodePlacement& node : integers.placement()) outcome.ops.push_back(node.op_type);
  return outcome;
}

Model quantized_input(const SymbolicShape& shape, Tensor zero = zero_of(100)) {
  Model b;
  b.input("in", ElementType::float32, shape);
  b.quantize("in", "x", 0.025f, std::move(zero));
  return b;
}

using Ops = std::vector<std::string>;

// Rounding is done at the same place, of a sum that may differ in its last bits: codes are at most one apart.
TEST(Qdq, SplitAndResizeMoveCodes) {
  Model b = quantized_input({1, 4, 3, 5});
  b.initializer("sizes", Tensor({2}, {int64_t{3}, int64_t{1}}));
  b.node("Split", {"x", "sizes"}, {"s", "t"}).set_attribute({"axis", int64_t{1}});
  b.quantize("s", "u", 0.025f, zero_of(100));
  b.initializer("scales", Tensor({4}, {1.0f, 1.0f, 2.0f, 3.0f}));
  b.node("Resize", {"u", "", "scales"}, {"r"}).set_attribute({"mode", "nearest"});
  b.quantize("r", "y", 0.025f, zero_of(100));
  b.quantize("t", "z", 0.025f, zero_of(100));
  b.output("y_q").output("z_q");
  const Outcome outcome = compare(b);
  EXPECT_EQ(outcome.ops, (Ops{"QuantizeLinear", "Split", "Resize"}));
  EXPECT_EQ(outcome.most, 0);
}

TEST(Qdq, ConvBecomesQLinearConv) {
  for (bool is_signed : {false, true}) {
    for (bool by_channel : {false, true}) {
      for (const char* bias : {"", "float", "int32"}) {
        for (const char* limit : {"", "Relu", "Clip"}) {
          SCOPED_TRACE(fmt::format("{} {} {} {}", is_signed, by_channel, bias, limit));
          Model b = quantized_input({2, 3, 9, 9}, is_signed ? signed_zero_of(-20) : zero_of(100));
          const Tensor scale = by_channel ? Tensor({4}, {0.01f, 0.02f, 0.03f, 0.04f}) : scalar(0.02f);
          if (is_signed)
            b.weights("w", random_tensor<int8_t>({4, 3, 3, 3}, -128, 127, 1), scale, std::nullopt);
          else
            b.weights("w", random_tensor<uint8_t>({4, 3, 3, 3}, 0, 255, 1), scale,
                      by_channel ? Tensor({4}, {byte(128), byte(120), byte(100), byte(130)}) : zero_of(128));
          std::vector<std::string> inputs = {"x", "w"};
          if (*bias) inputs.push_back("b");
          if (std::string(bias) == "float") b.initializer("b", Tensor({4}, {1.0f, -2.0f, 0.3f, 0.0f}));
          if (std::string(bias) == "int32")
            b.weights("b", Tensor({4}, {int32_t{1000}, int32_t{-5000}, int32_t{3}, int32_t{0}}),
                      by_channel ? Tensor({4}, {0.00025f, 0.0005f, 0.00075f, 0.001f}) : scalar(0.0005f), std::nullopt);
          ir::Node& conv = b.node("Conv", inputs, {"c"}, "stem");
          conv.set_attribute({"pads", std::vector<int64_t>{1, 1, 1, 1}});
          conv.set_attribute({"strides", std::vector<int64_t>{2, 1}});
          std::string last = "c";
          if (*limit) {
            b.initializer("low", scalar(0)).initializer("high", scalar(6));
            b.node(limit, *limit == 'R' ? std::vector<std::string>{"c"} : std::vector<std::string>{"c", "low", "high"},
                   {last = "limited"});
          }
          b.quantize(last, "y", *limit == 'C' ? 6.0f / 255 : 0.25f, *limit ? zero_of(0) : zero_of(128));
          b.output("y_q");
          const Outcome outcome = compare(b);
          EXPECT_EQ(outcome.ops, (Ops{"QuantizeLinear", "QLinearConv"}));
          EXPECT_LE(outcome.most, 1);
        }
      }
    }
  }
}

TEST(Qdq, MatMulBecomesQLinearMatMul) {
  for (bool by_column : {false, true}) {
    for (bool transposed : {false, true}) {
      SCOPED_TRACE(fmt::format("{} {}", by_column, transposed));
      Model b = quantized_input(transposed ? SymbolicShape{5, 7} : SymbolicShape{2, 5, 7});
      const Tensor scale = by_column ? Tensor({3}, {0.01f, 0.02f, 0.03f}) : scalar(0.02f);
      b.weights("w", random_tensor<int8_t>(transposed ? Shape{3, 7} : Shape{7, 3}, -128, 127, 2), scale, std::nullopt,
                transposed ? 0 : 1);
      b.node(transposed ? "Gemm" : "MatMul", {"x", "w"}, {"m"}).set_attribute({"transB", int64_t{1}});
      if (!transposed) b.graph().nodes().back().remove_attribute("transB");
      b.quantize("m", "y", 0.25f, signed_zero_of(5));
      b.output("y_q");
      const Outcome outcome = compare(b);
      EXPECT_EQ(outcome.ops, (Ops{"QuantizeLinear", "QLinearMatMul"}));
      EXPECT_LE(outcome.most, 1);
    }
  }
}

TEST(Qdq, ComputedMatrices) {
  Model b = quantized_input({2, 5, 7});
  b.input("other", ElementType::float32, SymbolicShape{2, 7, 4});
  b.quantize("other", "z", 0.03f, signed_zero_of(0));
  b.node("MatMul", {"x", "z"}, {"m"});
  b.quantize("m", "y", 0.5f, zero_of(90));
  b.output("y_q");
  const Outcome outcome = compare(b);
  EXPECT_EQ(outcome.ops, (Ops{"QuantizeLinear", "QuantizeLinear", "QLinearMatMul"}));
  EXPECT_LE(outcome.most, 1);
}

// Nothing is rounded but in the last bits of floats.
TEST(Qdq, SumsOfIntegersWhereTheResultIsFloat) {
  Model b = quantized_input({5, 7});
  b.weights("w", random_tensor<int8_t>({3, 7}, -128, 127, 2), Tensor({3}, {0.01f, 0.02f, 0.03f}),
            Tensor({3}, {int8_t{0}, int8_t{3}, int8_t{-5}}));
  b.initializer("b", Tensor({3}, {1.0f, -2.0f, 0.3f}));
  b.node("Gemm", {"x", "w", "b"}, {"y"}).set_attribute({"transB", int64_t{1}});
  b.output("y");
  const Outcome outcome = compare(b);
  EXPECT_EQ(outcome.ops, (Ops{"QuantizeLinear", "MatMulIntegerToFloat"}));
  EXPECT_LT(outcome.most, 2e-5);
}

// A bias is added to the sums, be it in a Gemm, after a MatMul, quantized as it is or a list of floats.
TEST(Qdq, ProductsWithABias) {
  for (const char* op : {"Gemm", "MatMul"}) {
    for (bool is_quantized : {false, true}) {
      SCOPED_TRACE(fmt::format("{} {}", op, is_quantized));
      Model b = quantized_input({5, 7});
      b.weights("w", random_tensor<int8_t>({7, 3}, -128, 127, 2), Tensor({3}, {0.01f, 0.02f, 0.03f}), std::nullopt, 1);
      if (is_quantized)
        b.weights("b", Tensor({3}, {int32_t{4000}, int32_t{-500}, int32_t{3}}),
                  Tensor({3}, {0.00025f, 0.0005f, 0.00075f}), std::nullopt);
      else
        b.initializer("b", Tensor({3}, {1.0f, -2.0f, 0.3f}));
      if (*op == 'G') {
        b.node("Gemm", {"x", "w", "b"}, {"sum"});
      } else {
        b.node("MatMul", {"x", "w"}, {"m"});
        b.node("Add", {"b", "m"}, {"sum"});
      }
      b.quantize("sum", "y", 0.25f, zero_of(128));
      b.output("y_q");
      const Outcome outcome = compare(b);
      EXPECT_EQ(outcome.ops, (Ops{"QuantizeLinear", "QLinearMatMul"}));
      EXPECT_LE(outcome.most, 1);
    }
  }
}

// A product that is quantized before codes are added to it is rounded twice.
TEST(Qdq, CodesAreAddedToAProduct) {
  Model b = quantized_input({2, 5, 7});
  b.weights("w", random_tensor<int8_t>({7, 3}, -128, 127, 2), scalar(0.02f), std::nullopt);
  b.weights("b", Tensor({3}, {byte(3), byte(255), byte(100)}), scalar(0.1f), zero_of(100));
  b.node("MatMul", {"x", "w"}, {"m"});
  b.quantize("m", "p", 0.25f, zero_of(100));
  b.node("Add", {"p", "b"}, {"sum"});
  b.quantize("sum", "y", 0.3f, zero_of(90));
  b.output("y_q");
  const Outcome outcome = compare(b);
  EXPECT_EQ(outcome.ops, (Ops{"QuantizeLinear", "QLinearMatMul"}));
  EXPECT_LE(outcome.most, 1);
}

// Where a run decides how many products are added up.
TEST(Qdq, ProductsOfUnknownLength) {
  Model b;
  b.input("in", ElementType::float32, SymbolicShape{2, 5, Dim::symbol("k")});
  b.input("other", ElementType::float32, SymbolicShape{2, Dim::symbol("k"), 4});
  b.quantize("in", "x", 0.025f, zero_of(100));
  b.quantize("other", "z", 0.03f, zero_of(0));
  b.node("MatMul", {"x", "z"}, {"m"});
  b.quantize("m", "y", 0.5f, zero_of(90));
  b.output("y_q");
  const Session session = b.session();
  std::vector<std::string> ops;
  for (const NodePlacement& node : session.placement()) ops.push_back(node.op_type);
  EXPECT_EQ(ops, (Ops{"QuantizeLinear", "QuantizeLinear", "QLinearMatMul"}));
}

TEST(Qdq, SoftmaxOfCodes) {
  Model b = quantized_input({2, 3, 40});
  b.node("Softmax", {"x"}, {"s"}).set_attribute({"axis", int64_t{2}});
  b.quantize("s", "y", 1.0f / 256, zero_of(0));
  b.output("y_q");
  const Outcome outcome = compare(b);
  EXPECT_EQ(outcome.ops, (Ops{"QuantizeLinear", "QLinearSoftmax"}));
  EXPECT_LE(outcome.most, 1);
}

// What quantize_dynamic of onnxruntime writes. The input is quantized once for both products.
TEST(Qdq, DynamicProducts) {
  Model b;
  b.input("in", ElementType::float32, SymbolicShape{2, 5, 7});
  b.node("DynamicQuantizeLinear", {"in"}, {"x_q", "x_scale", "x_zero"});
  b.initializer("zero", Tensor({3}, {int8_t{0}, int8_t{0}, int8_t{0}}));
  for (const std::string name : {"p", "q"}) {
    b.initializer(name + "_w", random_tensor<int8_t>({7, 3}, -128, 127, name == "p" ? 2 : 3));
    b.initializer(name + "_scale", Tensor({3}, {0.01f, 0.02f, 0.03f}))
        .initializer(name + "_bias", Tensor({3}, {1.0f, -2.0f, 0.3f}));
    b.node("MatMulInteger", {"x_q", name + "_w", "x_zero", "zero"}, {name + "_sums"});
    b.node("Cast", {name + "_sums"}, {name + "_float"}).set_attribute({"to", int64_t{1}});
    b.node("Mul", {"x_scale", name + "_scale"}, {name + "_scales"});
    b.node("Mul", {name + "_float", name + "_scales"}, {name + "_m"});
    b.node("Add", {name + "_bias", name + "_m"}, {name});
    b.output(name);
  }
  const Outcome outcome = compare(b);
  EXPECT_EQ(outcome.ops, (Ops{"DynamicQuantizeLinear", "MatMulIntegerToFloat", "MatMulIntegerToFloat"}));
  EXPECT_LT(outcome.most, 2e-5);
}

TEST(Qdq, ConvolutionsWhoseResultIsFloat) {
  for (bool by_channel : {false, true}) {
    Model b = quantized_input({1, 3, 5, 5});
    b.weights("w", random_tensor<int8_t>({4, 3, 3, 3}, -128, 127, 1),
              by_channel ? Tensor({4}, {0.01f, 0.02f, 0.03f, 0.04f}) : scalar(0.02f), std::nullopt);
    b.initializer("b", Tensor({4}, {1.0f, -2.0f, 0.3f, 0.0f}));
    b.node("Conv", {"x", "w", "b"}, {"y"}).set_attribute({"pads", std::vector<int64_t>{1, 1, 1, 1}});
    b.output("y");
    const Outcome outcome = compare(b);
    EXPECT_EQ(outcome.ops, (Ops{"QuantizeLinear", "ConvInteger", "DequantizeLinear", "Add"}));
    EXPECT_LT(outcome.most, 5e-5);
  }
}

TEST(Qdq, WhatMovesElementsMovesCodes) {
  Model b = quantized_input({1, 4, 6, 6});
  b.node("MaxPool", {"x"}, {"p"}).set_attribute({"kernel_shape", std::vector<int64_t>{2, 2}});
  b.quantize("p", "pool", 0.025f, zero_of(100));
  b.node("Transpose", {"pool"}, {"t"}).set_attribute({"perm", std::vector<int64_t>{0, 2, 3, 1}});
  b.node("Flatten", {"t"}, {"f"});
  b.node("Concat", {"f", "f"}, {"c"}).set_attribute({"axis", int64_t{1}});
  b.quantize("c", "y", 0.025f, zero_of(100));
  b.output("y_q");
  const Outcome outcome = compare(b);
  EXPECT_EQ(outcome.ops, (Ops{"QuantizeLinear", "MaxPool", "Transpose", "Flatten", "Concat"}));
  EXPECT_EQ(outcome.most, 0);
}

TEST(Qdq, WhatRepeatsElementsRepeatsFloats) {
  Model b = quantized_input({1, 3});
  b.initializer("shape", Tensor({2}, {int64_t{4}, int64_t{3}}));
  b.node("Expand", {"x", "shape"}, {"y"});
  b.output("y");
  const Outcome outcome = compare(b);
  EXPECT_EQ(outcome.ops, (Ops{"QuantizeLinear", "DequantizeLinear", "Expand"}));
  EXPECT_EQ(outcome.most, 0);
}

// The same way; another way is looked up.
TEST(Qdq, QuantizingAgainIsNothing) {
  Model b = quantized_input({3});
  b.quantize("x", "again", 0.025f, zero_of(100));
  b.quantize("again", "y", 0.03f, zero_of(100));
  b.output("y_q");
  EXPECT_EQ(compare(b).ops, (Ops{"QuantizeLinear", "LookUp"}));
  EXPECT_EQ(compare(b).most, 0);
}

TEST(Qdq, NotWhereItWouldBeSomethingElse) {
  auto conv = [](float w_scale = 0.02f) {
    Model b = quantized_input({1, 3, 5, 5});
    b.weights("w", random_tensor<int8_t>({4, 3, 3, 3}, -128, 127, 1), scalar(w_scale), std::nullopt);
    return b;
  };
  auto has_integer_conv = [](const Model& b) { return std::ranges::count(compare(b).ops, "QLinearConv") != 0; };
  Model used = conv(), limited = conv(), coarse = conv(4.0f), float_zero = conv();
  used.node("Conv", {"x", "w"}, {"c"});
  used.quantize("c", "y", 0.25f, zero_of(128));
  used.output("y_q").output("c");
  EXPECT_FALSE(has_integer_conv(used));
  // The zero point leaves codes below zero that Relu does not give.
  limited.node("Conv", {"x", "w"}, {"c"});
  limited.node("Relu", {"c"}, {"r"});
  limited.quantize("r", "y", 0.25f, zero_of(10));
  limited.output("y_q");
  EXPECT_FALSE(has_integer_conv(limited));
  // The bias would be rounded to steps of 0.1, with 0.25 for one of the output.
  coarse.initializer("b", Tensor({4}, {0.05f, -2.0f, 0.3f, 0.0f}));
  coarse.node("Conv", {"x", "w", "b"}, {"c"});
  coarse.quantize("c", "y", 0.25f, zero_of(128));
  coarse.output("y_q");
  EXPECT_FALSE(has_integer_conv(coarse));
  // A scale that only a run knows.
  Model dynamic;
  dynamic.input("in", ElementType::float32, SymbolicShape{1, 3, 5, 5});
  dynamic.node("DynamicQuantizeLinear", {"in"}, {"x_q", "x_scale", "x_zero"});
  dynamic.node("DequantizeLinear", {"x_q", "x_scale", "x_zero"}, {"x"});
  dynamic.weights("w", random_tensor<int8_t>({4, 3, 3, 3}, -128, 127, 1), scalar(0.02f), std::nullopt);
  dynamic.node("Conv", {"x", "w"}, {"c"});
  dynamic.quantize("c", "y", 0.25f, zero_of(128));
  dynamic.output("y_q");
  EXPECT_FALSE(has_integer_conv(dynamic));
  // Sums that may not fit.
  Model wide = quantized_input({1, 1 << 15});
  wide.weights("w", random_tensor<int8_t>({1 << 15, 1}, -128, 127, 1), scalar(0.02f), std::nullopt);
  wide.node("MatMul", {"x", "w"}, {"m"});
  wide.quantize("m", "y", 4.0f, zero_of(128));
  wide.output("y_q");
  EXPECT_EQ(std::ranges::count(compare(wide).ops, "QLinearMatMul"), 0);
}

// Sums, products and means of codes are rounded at the same place: they are at most one apart.
TEST(Qdq, ArithmeticOnCodes) {
  for (const char* op : {"Add", "Mul"}) {
    Model b = quantized_input({2, 3, 4, 4});
    b.input("other", ElementType::float32, SymbolicShape{2, 3, 1, 1});
    b.quantize("other", "z", 0.03f, zero_of(90));
    b.node(op, {"x", "z"}, {"sum"});
    b.node("Relu", {"sum"}, {"r"});
    b.quantize("r", "y", 0.05f, zero_of(0));
    b.output("y_q");
    const Outcome outcome = compare(b);
    EXPECT_EQ(outcome.ops, (Ops{"QuantizeLinear", "QuantizeLinear", *op == 'A' ? "QLinearAdd" : "QLinearMul"}));
    EXPECT_LE(outcome.most, 1);
  }
  Model pool = quantized_input({2, 3, 5, 5});
  pool.node("GlobalAveragePool", {"x"}, {"p"});
  pool.quantize("p", "y", 0.005f, zero_of(120));
  pool.output("y_q");
  const Outcome outcome = compare(pool);
  EXPECT_EQ(outcome.ops, (Ops{"QuantizeLinear", "QLinearGlobalAveragePool"}));
  EXPECT_LE(outcome.most, 1);
}

// What is a function of one code is looked up, exactly.
TEST(Qdq, FunctionsOfCodes) {
  for (const char* op : {"Sigmoid", "HardSwish", "Tanh", "Relu"}) {
    Model b = quantized_input({2, 3, 4}, signed_zero_of(-20));
    b.node(op, {"x"}, {"f"});
    b.quantize("f", "y", 0.01f, zero_of(128));
    b.output("y_q");
    const Outcome outcome = compare(b);
    EXPECT_EQ(outcome.ops, (Ops{"QuantizeLinear", "LookUp"})) << op;
    EXPECT_EQ(outcome.most, 0) << op;
  }
  // x * sigmoid(x), with a rounded sigmoid.
  Model swish = quantized_input({2, 3, 4});
  swish.node("Sigmoid", {"x"}, {"f"});
  swish.quantize("f", "s", 1.0f / 255, zero_of(0));
  swish.node("Mul", {"x", "s"}, {"m"});
  swish.quantize("m", "y", 0.02f, zero_of(20));
  swish.output("y_q");
  Outcome outcome = compare(swish);
  EXPECT_EQ(outcome.ops, (Ops{"QuantizeLinear", "LookUp"}));
  EXPECT_EQ(outcome.most, 0);
  // (x + 1) * 0.5, clipped.
  Model chain = quantized_input({5});
  chain.initializer("one", scalar(1)).initializer("half", scalar(0.5f)).initializer("low", scalar(-0.25f));
  chain.node("Add", {"x", "one"}, {"a"});
  chain.node("Mul", {"half", "a"}, {"m"});
  chain.node("Clip", {"m", "low"}, {"c"});
  chain.quantize("c", "y", 0.02f, zero_of(20));
  chain.output("y_q");
  outcome = compare(chain);
  EXPECT_EQ(outcome.ops, (Ops{"QuantizeLinear", "LookUp"}));
  EXPECT_EQ(outcome.most, 0);
  // A constant that is quantized too, and what can only happen to floats.
  Model quantized = quantized_input({5});
  quantized.weights("half", zero_of(255), scalar(0.5f / 255), zero_of(0));
  quantized.initializer("nothing", scalar(0));
  quantized.node("Mul", {"half", "x"}, {"m"});
  quantized.quantize("m", "h", 0.02f, zero_of(20));
  quantized.node("IsNaN", {"h"}, {"n"});
  quantized.node("Where", {"n", "nothing", "h"}, {"w"});
  quantized.quantize("w", "y", 0.02f, zero_of(20));
  quantized.output("y_q");
  outcome = compare(quantized);
  EXPECT_EQ(outcome.ops, (Ops{"QuantizeLinear", "LookUp"}));
  EXPECT_EQ(outcome.most, 0);
  // A constant for each element is no function of the code alone.
  Model by_element = quantized_input({3});
  by_element.initializer("c", Tensor({3}, {1.0f, 2.0f, 3.0f}));
  by_element.node("Mul", {"x", "c"}, {"m"});
  by_element.quantize("m", "y", 0.02f, zero_of(20));
  by_element.output("y_q");
  EXPECT_EQ(std::ranges::count(compare(by_element).ops, "LookUp"), 0);
}

// What is joined gets the codes that the result has.
TEST(Qdq, ConcatOfOtherScales) {
  Model b = quantized_input({1, 3});
  b.input("other", ElementType::float32, SymbolicShape{1, 3});
  b.quantize("other", "z", 0.03f, zero_of(100));
  b.node("Concat", {"x", "z"}, {"c"}).set_attribute({"axis", int64_t{0}});
  b.quantize("c", "y", 0.025f, zero_of(100));
  b.output("y_q");
  const Outcome outcome = compare(b);
  EXPECT_EQ(outcome.ops, (Ops{"QuantizeLinear", "QuantizeLinear", "LookUp", "Concat"}));
  EXPECT_EQ(outcome.most, 0);
}

// A convolutional net as quantizers write it. Each layer is at most one step off, which the next ones average out.
TEST(Qdq, WholeNet) {
  Model b = quantized_input({1, 3, 16, 16});
  b.weights("w1", random_tensor<int8_t>({8, 3, 3, 3}, -128, 127, 1), random_tensor<float>({8}, 1, 9, 2, 0.001f),
            std::nullopt);
  b.initializer("b1", random_tensor<float>({8}, -50, 50, 3, 0.01f));
  b.node("Conv", {"x", "w1", "b1"}, {"c1"}).set_attribute({"pads", std::vector<int64_t>{1, 1, 1, 1}});
  b.node("Relu", {"c1"}, {"r1"});
  b.quantize("r1", "s1", 0.05f, zero_of(0));
  b.node("MaxPool", {"s1"}, {"p1"}).set_attribute({"kernel_shape", std::vector<int64_t>{2, 2}});
  b.quantize("p1", "s2", 0.05f, zero_of(0));
  b.weights("w2", random_tensor<int8_t>({8, 1, 3, 3}, -128, 127, 4), scalar(0.004f), signed_zero_of(0));
  b.node("Conv", {"s2", "w2"}, {"c2"}).set_attribute({"group", int64_t{8}});
  b.quantize("c2", "s3", 0.1f, zero_of(120));
  b.node("Conv", {"s2", "w2"}, {"c3"}).set_attribute({"group", int64_t{8}});
  b.quantize("c3", "s4", 0.1f, zero_of(120));
  b.node("Add", {"s3", "s4"}, {"sum"});
  b.quantize("sum", "s5", 0.2f, zero_of(120));
  b.node("Flatten", {"s5"}, {"flat"});
  b.quantize("flat", "s6", 0.2f, zero_of(120));
  b.weights("w3", random_tensor<int8_t>({10, 1352}, -128, 127, 5), scalar(0.001f), std::nullopt);
  b.initializer("b3", random_tensor<float>({10}, -50, 50, 3, 0.01f));
  b.node("Gemm", {"s6", "w3", "b3"}, {"logits"}).set_attribute({"transB", int64_t{1}});
  b.quantize("logits", "y", 0.5f, zero_of(128));
  b.output("y");
  const Outcome outcome = compare(b);
  EXPECT_LE(outcome.most, 0.5);
  EXPECT_EQ(std::ranges::count(outcome.ops, "QLinearConv"), 2);
  EXPECT_EQ(std::ranges::count(outcome.ops, "QLinearMatMul"), 1);
  EXPECT_EQ(std::ranges::count(outcome.ops, "Conv") + std::ranges::count(outcome.ops, "Gemm") +
                std::ranges::count(outcome.ops, "Relu"),
            0);
}

}  // namespace
}  // namespace tenon

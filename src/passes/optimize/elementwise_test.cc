#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <random>

#include "pass_test.h"

namespace tenon {
namespace {

const Dim batch = Dim::symbol("batch");
const std::vector<std::string> passes = {"elementwise"};

ModelBuilder inputs() {
  ModelBuilder b;
  b.input("x", ElementType::float32, SymbolicShape{batch, 4, 5}).input("z", ElementType::float32, SymbolicShape{5});
  b.initializer("half", Tensor(Shape{}, {0.5f})).initializer("two", Tensor({1}, {2.0f}));
  return b;
}

TEST(Elementwise, AChainBecomesOneNode) {
  ModelBuilder b = inputs();
  b.node("Mul", {"x", "half"}, {"a"});
  b.node("Clip", {"a", "", "two"}, {"c"});
  b.node("Pow", {"c", "two"}, {"p"});
  b.node("LeakyRelu", {"p"}, {"l"});
  b.node("Sub", {"z", "l"}, {"s"});
  b.node("Gelu", {"s"}, {"y"}).set_attribute({"approximate", std::string("tanh")});
  b.output("y");
  EXPECT_EQ(optimized(b, passes),
            "initializer half: tensor(float) [] = 0.5\n"
            "y = tenon.FusedElementwise(x, half, z) "
            "{operators=[\"Mul\", \"Clip\", \"Pow\", \"LeakyRelu\", \"Sub\", \"TanhGelu\"], "
            "operands=[0, 1, 3, 4, 5, 2, 6, 7], parameters=[-inf, 2, 2, 0.01]}\n");
  ASSERT_EQ(last_rewrites().size(), 1u);
  EXPECT_EQ(last_rewrites()[0].before.size(), 6u);
}

TEST(Elementwise, ResultsThatOnlyTheGroupNeeds) {
  ModelBuilder b = inputs();
  b.node("Add", {"x", "z"}, {"sum"});
  b.node("Sigmoid", {"sum"}, {"gate"});
  b.node("Mul", {"sum", "gate"}, {"product"});
  b.node("Add", {"product", "x"}, {"y"});
  b.output("y");
  const std::string text = optimized(b, passes);
  EXPECT_EQ(text.substr(text.find("y = ")),
            "y = tenon.FusedElementwise(x, z) {operators=[\"Add\", \"Sigmoid\", \"Mul\", \"Add\"], "
            "operands=[0, 1, 2, 2, 3, 4, 0], parameters=[]}\n");
}

TEST(Elementwise, NotWhatOthersNeed) {
  auto rewrites = [](ModelBuilder& b, const std::vector<std::string>& keep = {}) {
    b.output("y");
    optimized(b, passes, keep);
    return last_rewrites().size();
  };
  ModelBuilder used = inputs(), kept = inputs(), alone = inputs(), grows = inputs(), integers, computed = inputs(),
               rows = inputs();
  used.node("Neg", {"x"}, {"n"});
  used.node("Exp", {"n"}, {"y"});
  used.node("ReduceSum", {"n"}, {"r"});
  used.output("r");
  EXPECT_EQ(rewrites(used), 0u);
  kept.node("Neg", {"x"}, {"n"});
  kept.node("Exp", {"n"}, {"y"});
  EXPECT_EQ(rewrites(kept, {"n"}), 0u);
  alone.node("Neg", {"x"}, {"y"});
  EXPECT_EQ(rewrites(alone), 0u);
  grows.node("Neg", {"z"}, {"n"});
  grows.node("Add", {"n", "x"}, {"y"});
  EXPECT_EQ(rewrites(grows), 0u);
  integers.input("x", ElementType::int32, SymbolicShape{3});
  integers.node("Neg", {"x"}, {"n"});
  integers.node("Abs", {"n"}, {"y"});
  EXPECT_EQ(rewrites(integers), 0u);
  computed.node("Pow", {"x", "z"}, {"p"});
  computed.node("Abs", {"p"}, {"y"});
  EXPECT_EQ(rewrites(computed), 0u);
  // Less work than to lay out what is broadcast.
  rows.node("Mul", {"x", "z"}, {"m"});
  rows.node("Neg", {"m"}, {"n"});
  rows.node("Exp", {"n"}, {"y"});
  EXPECT_EQ(rewrites(rows), 1u);
}

TEST(Elementwise, LongGroupsAreSplit) {
  ModelBuilder chain = inputs(), wide = inputs();
  std::string last = "x";
  for (int i = 0; i < 70; ++i) {
    std::string next = "v" + std::to_string(i);
    chain.node("Neg", {last}, {next});
    last = next;
  }
  chain.output(last);
  optimized(chain, passes);
  EXPECT_EQ(last_rewrites().size(), 3u);
  last = "x";
  for (int i = 0; i < 30; ++i) {
    std::string next = "v" + std::to_string(i), more = "x" + std::to_string(i);
    wide.input(more, ElementType::float32, SymbolicShape{batch, 4, 5});
    wide.node("Add", {last, more}, {next});
    last = next;
  }
  wide.output(last);
  optimized(wide, passes);
  EXPECT_EQ(last_rewrites().size(), 2u);
}

TEST(Elementwise, LeavesToOtherPassesWhatTheyLookFor) {
  ModelBuilder b = inputs();
  b.initializer("w", Tensor({5, 2}, {1.0f, 2.0f, -3.0f, 4.0f, 5.0f, -6.0f, 7.0f, 8.0f, 9.0f, 1.0f}));
  b.node("Sigmoid", {"x"}, {"gate"});
  b.node("Mul", {"x", "gate"}, {"silu"});
  b.node("MatMul", {"silu", "w"}, {"m"});
  b.node("Relu", {"m"}, {"r"});
  b.node("Neg", {"r"}, {"n"});
  b.node("Exp", {"n"}, {"y"});
  b.output("y");
  std::string text = optimized(b, {"elementwise", "swish", "matmul-epilogue"});
  EXPECT_EQ(text.substr(text.find("silu = ")),
            "silu = Swish(x) {alpha=1}\n"
            "r = tenon.FusedMatMul(silu, w) {activation=\"Relu\"}\n"
            "y = tenon.FusedElementwise(r) {operators=[\"Neg\", \"Exp\"], operands=[0, 1], parameters=[]}\n");
}

const char* const unary[] = {
    "Abs",   "Neg",   "Sign", "Floor",   "Ceil",      "Round",    "Reciprocal",  "Sqrt",           "Exp",  "Log",
    "Erf",   "Sin",   "Cos",  "Tan",     "Asin",      "Acos",     "Atan",        "Sinh",           "Cosh", "Asinh",
    "Acosh", "Atanh", "Tanh", "Sigmoid", "Relu",      "Softplus", "Softsign",    "HardSwish",      "Mish", "Gelu",
    "Swish", "Elu",   "Celu", "Selu",    "LeakyRelu", "Shrink",   "HardSigmoid", "ThresholdedRelu"};
const char* const binary[] = {"Add", "Sub", "Mul", "Div", "Min", "Max"};
// Broadcast in every way; the first is longer than a block.
const std::vector<SymbolicShape> shapes = {{2, 37, 41}, {}, {41}, {37, 1}, {2, 1, 1}, {1, 37, 41}, {2, 1, 41}};

// Output y with the pass and without it. NaN is NaN: which one it is, nobody says. Returns the number of fused nodes.
size_t expect_same_bits(ModelBuilder& b) {
  b.output("y");
  SessionOptions options;
  options.level = OptimizationLevel::none;
  Session plain = b.session(options);
  options.level = OptimizationLevel::exact;
  Session fused = b.session(options);
  NamedValues values;
  uint32_t state = 1;
  for (const ValueInfo& info : plain.inputs()) {
    Shape shape;
    for (const std::string& size : info.shape) shape.push_back(std::stoll(size));
    Tensor tensor(ElementType::float32, shape);
    for (float& item : tensor.mutable_data<float>()) {
      state = state * 1664525 + 1013904223;
      item = static_cast<float>(static_cast<int32_t>(state)) * 0x1p-29f;
    }
    values.emplace(info.name, std::move(tensor));
  }
  NamedValues expected = plain.run(values), actual = fused.run(values);
  const auto e = expected.at("y").tensor().data<float>(), a = actual.at("y").tensor().data<float>();
  EXPECT_EQ(e.size(), a.size());
  const bool same = std::ranges::equal(e, a, [](float p, float q) {
    return std::bit_cast<uint32_t>(p) == std::bit_cast<uint32_t>(q) || (std::isnan(p) && std::isnan(q));
  });
  EXPECT_TRUE(same);
  return fused.rewrites().size();
}

TEST(Elementwise, SameBitsAsTheSingleNodes) {
  Tensor exponents[] = {Tensor(Shape{}, {2.0f}), Tensor(Shape{}, {0.5f}), Tensor(Shape{}, {1.7f})};
  for (const char* op : unary) {
    SCOPED_TRACE(op);
    ModelBuilder b;
    b.input("x", ElementType::float32, shapes[0]);
    b.node(op, {"x"}, {"f"});
    b.node("Add", {"f", "x"}, {"y"});
    EXPECT_EQ(expect_same_bits(b), 1u);
  }
  for (const char* op : binary) {
    for (const SymbolicShape& shape : shapes) {
      SCOPED_TRACE(std::string(op) + to_string(shape));
      ModelBuilder b;
      b.input("x", ElementType::float32, shapes[0]).input("z", ElementType::float32, shape);
      b.node(op, {"x", "z"}, {"f"});
      b.node(op, {"z", "f"}, {"g"});
      b.node("Neg", {"g"}, {"h"});
      b.node("Abs", {"h"}, {"y"});
      EXPECT_EQ(expect_same_bits(b), 1u);
    }
  }
  for (const Tensor& exponent : exponents) {
    ModelBuilder b;
    b.input("x", ElementType::float32, shapes[0]).initializer("e", exponent);
    b.node("Pow", {"x", "e"}, {"p"});
    b.node("Clip", {"p", "", "e"}, {"y"});
    EXPECT_EQ(expect_same_bits(b), 1u);
  }
}

// Results that are used more than once, by whatever, on either side.
TEST(Elementwise, SameBitsInRandomGraphs) {
  std::mt19937 random(1);
  size_t fused = 0;
  auto pick = [&](const auto& list) { return list[random() % std::size(list)]; };
  for (int graph = 0; graph < 60; ++graph) {
    SCOPED_TRACE(graph);
    ModelBuilder b;
    std::vector<std::string> all, whole, unused;
    for (size_t i = 0; i < shapes.size(); ++i) {
      all.push_back("x" + std::to_string(i));
      b.input(all.back(), ElementType::float32, shapes[i]);
    }
    whole.push_back("x0");
    const size_t count = 2 + random() % 40;
    for (size_t k = 0; k < count; ++k) {
      const std::string result = "r" + std::to_string(k), first = random() % 2 ? whole.back() : pick(whole);
      std::vector<std::string> inputs = {first};
      const bool is_binary = random() % 4 != 0;
      if (is_binary) inputs.insert(inputs.begin() + random() % 2, pick(all));
      b.node(is_binary ? pick(binary) : pick(unary), inputs, {result});
      for (const std::string& input : inputs) std::erase(unused, input);
      for (std::vector<std::string>* list : {&all, &whole, &unused}) list->push_back(result);
    }
    while (unused.size() > 1) {
      const std::string sum = "s" + std::to_string(unused.size());
      b.node("Max", {unused[0], unused[1]}, {sum});
      unused.erase(unused.begin(), unused.begin() + 2);
      unused.push_back(sum);
    }
    b.node("Neg", {unused[0]}, {"y"});
    fused += expect_same_bits(b);
  }
  EXPECT_GT(fused, 60u);
}

}  // namespace
}  // namespace tenon

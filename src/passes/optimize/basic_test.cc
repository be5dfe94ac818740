#include <gtest/gtest.h>

#include <cmath>

#include "pass_test.h"

namespace tenon {
namespace {

const Dim n = Dim::symbol("n"), m = Dim::symbol("m");

ModelBuilder with_input(SymbolicShape shape, ElementType type = ElementType::float32) {
  ModelBuilder b;
  b.input("x", type, std::move(shape));
  return b;
}

Tensor ints(std::initializer_list<int64_t> numbers) { return Tensor({static_cast<int64_t>(numbers.size())}, numbers); }

TEST(DeadCode, RemovesWhatNoOutputNeeds) {
  ModelBuilder b = with_input({2});
  b.initializer("w", Tensor({2}, {1.0f, 2.0f}));
  b.node("Mul", {"x", "w"}, {"a"});
  b.node("Exp", {"a"}, {"unused"});
  b.node("Relu", {"x"}, {"y"});
  b.output("y");
  EXPECT_EQ(optimized(b, {"dead-code"}), "y = Relu(x)\n");
}

TEST(Identity, DropoutIsOneUnlessItTrains) {
  auto model = [](bool training) {
    ModelBuilder b = with_input({2});
    b.initializer("ratio", Tensor::scalar(0.5f)).initializer("training", Tensor(Shape{}, {training}));
    b.node("Dropout", {"x", "ratio", "training"}, {"d"});
    b.node("Relu", {"d"}, {"y"});
    b.output("y");
    return b;
  };
  ModelBuilder tested = model(false), trained = model(true);
  EXPECT_EQ(optimized(tested, {"identity"}), "y = Relu(x)\n");
  EXPECT_NE(optimized(trained, {"identity"}).find("Dropout"), std::string::npos);
}

TEST(FoldConstants, ComputesWhatDependsOnConstantsOnly) {
  ModelBuilder b = with_input({2});
  b.initializer("w", Tensor({2}, {1.0f, 2.0f}));
  b.node("Mul", {"w", "w"}, {"a"});
  b.node("Neg", {"a"}, {"b"});
  b.node("Add", {"x", "b"}, {"y"});
  b.output("y");
  EXPECT_EQ(optimized(b, {"fold-constants"}), "initializer b: tensor(float) [2] = [-1, -4]\ny = Add(x, b)\n");
}

TEST(FoldConstants, KnowsSizesButNeverSymbols) {
  ModelBuilder b = with_input({n, 3, 4});
  b.initializer("one", Tensor::scalar(int64_t{1})).initializer("zero", Tensor::scalar(int64_t{0}));
  b.node("Shape", {"x"}, {"shape"});
  b.node("Gather", {"shape", "one"}, {"three"});
  b.node("Gather", {"shape", "zero"}, {"batch"});
  b.output("three").output("batch");
  EXPECT_EQ(optimized(b, {"fold-constants", "dead-code"}),
            "initializer zero: tensor(int64) [] = 0\n"
            "initializer three: tensor(int64) [] = 3\n"
            "shape = Shape(x)\n"
            "batch = Gather(shape, zero)\n");
}

TEST(FoldConstants, LeavesWhatGrowsAndWhatIsRandom) {
  ModelBuilder b;
  b.initializer("shape", Tensor({1}, {int64_t{4} << 20}));
  b.node("ConstantOfShape", {"shape"}, {"zeros"});
  b.node("RandomUniformLike", {"shape"}, {"noise"}).set_attribute({"dtype", int64_t{1}});
  b.output("zeros").output("noise");
  EXPECT_EQ(optimized(b, {"fold-constants"}),
            "initializer shape: tensor(int64) [1] = [4194304]\n"
            "zeros = ConstantOfShape(shape)\n"
            "noise = RandomUniformLike(shape) {dtype=1}\n");
}

TEST(FoldConstants, LeavesNodesThatFail) {
  ModelBuilder b;
  b.initializer("w", Tensor({2}, {1.0f, 2.0f})).initializer("at", ints({7}));
  b.node("Gather", {"w", "at"}, {"y"}, "pick");
  b.output("y");
  EXPECT_NE(optimized(b, {"fold-constants"}).find("y = Gather(w, at)"), std::string::npos);
}

TEST(CommonSubexpressions, KeepsOneOfEqualNodesAndConstants) {
  ModelBuilder b = with_input({2});
  b.initializer("one", Tensor({2}, {1.0f, 2.0f})).initializer("two", Tensor({2}, {1.0f, 2.0f}));
  b.initializer("other", Tensor({1, 2}, {1.0f, 2.0f}));
  b.node("Mul", {"x", "one"}, {"a"});
  b.node("Mul", {"x", "two"}, {"b"});
  b.node("Mul", {"x", "other"}, {"c"});
  b.node("Sub", {"a", "b"}, {"d"});
  b.node("Sub", {"d", "c"}, {"y"});
  b.output("y");
  EXPECT_EQ(optimized(b, {"common-subexpressions"}),
            "initializer one: tensor(float) [2] = [1, 2]\n"
            "initializer other: tensor(float) [1, 2]\n"
            "a = Mul(x, one)\n"
            "c = Mul(x, other)\n"
            "d = Sub(a, a)\n"
            "y = Sub(d, c)\n");
}

TEST(CommonSubexpressions, SizesThatAreEqualHoweverTheyAreComputed) {
  const Dim rows = Dim::symbol("rows");
  ModelBuilder b;
  b.input("x", ElementType::float32, SymbolicShape{rows, 2}).input("z", ElementType::float32, SymbolicShape{3, rows});
  b.input("w", ElementType::float32, SymbolicShape{Dim::symbol("other"), 2});
  b.initializer("first", Tensor({1}, {int64_t{0}})).initializer("second", Tensor({1}, {int64_t{1}}));
  for (const char* name : {"x", "z", "w"}) b.node("Shape", {name}, {std::string(name) + ".shape"});
  b.node("Gather", {"x.shape", "first"}, {"a"});
  b.node("Gather", {"z.shape", "second"}, {"b"});
  b.node("Gather", {"w.shape", "first"}, {"c"});
  b.node("Add", {"a", "b"}, {"d"});
  b.node("Add", {"d", "c"}, {"e"});
  b.node("Mul", {"e", "e"}, {"y"});
  b.output("y");
  EXPECT_EQ(optimized(b, {"common-subexpressions", "dead-code"}),
            "initializer first: tensor(int64) [1] = [0]\n"
            "x.shape = Shape(x)\n"
            "w.shape = Shape(w)\n"
            "a = Gather(x.shape, first)\n"
            "c = Gather(w.shape, first)\n"
            "d = Add(a, a)\n"
            "e = Add(d, c)\n"
            "y = Mul(e, e)\n");
}

TEST(Reshape, TwoUnsqueezesBecomeOne) {
  ModelBuilder b;
  b.input("x", ElementType::float32, SymbolicShape{Dim::symbol("n"), 2});
  b.initializer("inner", Tensor({2}, {int64_t{-1}, int64_t{0}}));  // [1, n, 2, 1]
  b.initializer("outer", Tensor({2}, {int64_t{1}, int64_t{-2}}));  // [1, 1, n, 2, 1, 1]
  b.node("Unsqueeze", {"x", "inner"}, {"z"});
  b.node("Unsqueeze", {"z", "outer"}, {"y"}, "again");
  b.output("y");
  EXPECT_EQ(change_by_extended(b), 0);
  EXPECT_EQ(optimized(b, {"reshape", "dead-code"}),
            "initializer again/constant/tenon_0: tensor(int64) [4] = [0, 1, 4, 5]\ny = Unsqueeze(x, "
            "again/constant/tenon_0)\n");
}

TEST(FoldConstants, SizesAreNotNegative) {
  // As torch writes an Expand whose sizes may be -1, for "as it is".
  ModelBuilder b;
  b.input("x", ElementType::float32, SymbolicShape{Dim::symbol("n"), Dim::symbol("m")});
  b.initializer("minus", Tensor({2}, {int64_t{-1}, int64_t{-1}}));
  b.initializer("ones", Tensor({2}, {int64_t{1}, int64_t{1}}));
  b.node("Shape", {"x"}, {"shape"});
  b.node("Add", {"shape", "ones"}, {"larger"});
  b.node("Equal", {"larger", "minus"}, {"is_open"});
  b.node("Where", {"is_open", "ones", "larger"}, {"y"});
  b.output("y");
  EXPECT_EQ(optimized(b, {"fold-constants", "common-subexpressions", "dead-code"}),
            "initializer ones: tensor(int64) [2] = [1, 1]\n"
            "shape = Shape(x)\n"
            "y = Add(shape, ones)\n");
}

TEST(CommonSubexpressions, NeverMergesRandomNodesOrTwoOutputs) {
  ModelBuilder b = with_input({2});
  for (const char* name : {"a", "b"}) b.node("RandomNormalLike", {"x"}, {name});
  b.node("Relu", {"x"}, {"c"});
  b.node("Relu", {"x"}, {"d"});
  b.output("a").output("b").output("c").output("d");
  EXPECT_EQ(optimized(b, {"common-subexpressions"}),
            "a = RandomNormalLike(x)\nb = RandomNormalLike(x)\nc = Relu(x)\nd = Relu(x)\n");
}

TEST(ZeroSum, GoesWhereTheShapeStays) {
  const auto with = [](Tensor bias) {
    ModelBuilder b = with_input({n, 2});
    b.initializer("bias", std::move(bias));
    b.node("Add", {"x", "bias"}, {"a"});
    b.node("Relu", {"a"}, {"y"});
    b.output("y");
    return optimized(b, {"zero-sum"});
  };
  EXPECT_EQ(with(Tensor({2}, {0.0f, 0.0f})), "y = Relu(x)\n");
  EXPECT_NE(with(Tensor({2}, {0.0f, 1.0f})), "y = Relu(x)\n");
  EXPECT_NE(with(Tensor({3, 1, 2}, {0.0f, 0.0f, 0.0f, 0.0f, 0.0f, 0.0f})), "y = Relu(x)\n") << "it makes three of one";
}

TEST(ZeroState, IsLeftOut) {
  const auto with = [](float state) {
    ModelBuilder b = with_input({3, n, 4});
    const std::vector<float> weights(8, 0.5f);
    b.initializer("w", Tensor({1, 2, 4}, std::span(weights)))
        .initializer("r", Tensor({1, 2, 2}, std::span(weights).first(4)));
    b.initializer("sizes", ints({1, 5, 2})).initializer("state", Tensor({1, 1, 1}, {state}));
    b.node("Expand", {"state", "sizes"}, {"h"});
    b.node("RNN", {"x", "w", "r", "", "", "h"}, {"y"});
    b.output("y");
    return optimized(b, {"zero-state", "dead-code"});
  };
  EXPECT_EQ(with(0).find("Expand"), std::string::npos) << with(0);
  EXPECT_NE(with(1).find("Expand"), std::string::npos) << with(1);
}

TEST(NoOp, Table) {
  struct Case {
    std::string op;
    std::vector<Tensor> constants;
    bool goes;
    ElementType type = ElementType::float32;
  };
  const Case cases[] = {
      {"Mul", {Tensor::scalar(1.0f)}, true},
      {"Mul", {Tensor({1, 1}, {1.0f})}, true},
      {"Mul", {Tensor({1, 1, 1}, {1.0f})}, false},
      {"Mul", {Tensor({3}, {1.0f, 1.0f, 2.0f})}, false},
      {"Div", {Tensor::scalar(1.0f)}, true},
      {"Sub", {Tensor::scalar(0.0f)}, true},
      {"Add", {Tensor::scalar(0.0f)}, false},
      {"Add", {Tensor::scalar(int64_t{0})}, true, ElementType::int64},
      {"And", {Tensor(Shape{}, {true})}, true, ElementType::boolean},
      {"And", {Tensor({3}, {true, false, true})}, false, ElementType::boolean},
      {"Or", {Tensor({1, 1}, {false})}, true, ElementType::boolean},
      {"Xor", {Tensor(Shape{}, {true})}, false, ElementType::boolean},
      {"Expand", {ints({1, 3})}, true},
      {"Expand", {ints({2, 1, 1})}, false},
      {"Tile", {ints({1, 1})}, true},
      {"Tile", {ints({1, 2})}, false},
      {"Pad", {ints({0, 0, 0, 0})}, true},
      {"Pad", {ints({0, 1, 0, 0})}, false},
      {"Slice", {ints({0}), ints({3}), ints({1})}, true},
      {"Slice", {ints({0}), ints({2}), ints({1})}, false},
      {"Slice", {ints({2}), ints({-4}), ints({1}), ints({-1})}, false},
      {"Concat", {}, true},
      {"Max", {}, true},
  };
  for (const Case& c : cases) {
    ModelBuilder b = with_input({n, 3}, c.type);
    std::vector<std::string> inputs{"x"};
    for (const Tensor& constant : c.constants) {
      inputs.push_back("c" + std::to_string(inputs.size()));
      b.initializer(inputs.back(), constant);
    }
    ir::Node& node = b.node(c.op, inputs, {"a"});
    if (c.op == "Concat") node.set_attribute({"axis", int64_t{0}});
    b.node("Identity", {"a"}, {"y"});
    b.output("y");
    std::string text = optimized(b, {"no-op"});
    EXPECT_EQ(text == "y = Identity(x)\n", c.goes) << c.op << "\n" << text;
  }
}

TEST(Cast, MergesWhatLosesNothing) {
  auto text = [](ElementType from, ElementType over, ElementType to) {
    ModelBuilder b = with_input({2}, from);
    b.node("Cast", {"x"}, {"a"}).set_attribute({"to", static_cast<int64_t>(over)});
    b.node("Cast", {"a"}, {"b"}).set_attribute({"to", static_cast<int64_t>(to)});
    b.node("Identity", {"b"}, {"y"});
    b.output("y");
    return optimized(b, {"cast", "dead-code"});
  };
  using enum ElementType;
  EXPECT_EQ(text(float32, float32, float32), "y = Identity(x)\n");
  EXPECT_EQ(text(float16, float32, float16), "y = Identity(x)\n");
  EXPECT_EQ(text(ElementType::int32, float64, ElementType::int64), "b = Cast(x) {to=7}\ny = Identity(b)\n");
  EXPECT_EQ(text(float32, float16, float32), "a = Cast(x) {to=10}\nb = Cast(a) {to=1}\ny = Identity(b)\n");
  EXPECT_EQ(text(float32, ElementType::int64, float32), "a = Cast(x) {to=7}\nb = Cast(a) {to=1}\ny = Identity(b)\n");
  EXPECT_EQ(text(ElementType::int64, float32, ElementType::int64),
            "a = Cast(x) {to=1}\nb = Cast(a) {to=7}\ny = Identity(b)\n");
}

TEST(Cast, CodesAreMadeOfHalves) {
  using enum ElementType;
  ModelBuilder b = with_input({2}, float16);
  b.initializer("scale", Tensor::scalar(0.1f));
  b.node("Cast", {"x"}, {"floats"}).set_attribute({"to", static_cast<int64_t>(float32)});
  b.node("QuantizeLinear", {"floats", "scale"}, {"codes"});
  b.node("DequantizeLinear", {"codes", "scale"}, {"again"});
  b.node("Cast", {"again"}, {"halves"}).set_attribute({"to", static_cast<int64_t>(float16)});
  b.node("Identity", {"halves"}, {"y"});
  b.output("y");
  EXPECT_EQ(optimized(b, {"codes-of-halves", "dead-code"}),
            "initializer scale: tensor(float) [] = 0.1\ncodes = QuantizeLinear(x, scale)\nhalves = "
            "DequantizeLinear(codes, scale) {output_dtype=10}\n"
            "y = Identity(halves)\n");
}

TEST(Reshape, MergesAndDisappears) {
  ModelBuilder b = with_input({n, 6});
  b.initializer("axes", ints({1})).initializer("target", ints({-1, 3}));
  b.node("Unsqueeze", {"x", "axes"}, {"a"});
  b.node("Squeeze", {"a", "axes"}, {"b"});
  b.node("Relu", {"b"}, {"c"});
  b.node("Unsqueeze", {"c", "axes"}, {"d"});
  b.node("Reshape", {"d", "target"}, {"y"});
  b.output("y");
  EXPECT_EQ(optimized(b, {"reshape"}),
            "initializer target: tensor(int64) [2] = [-1, 3]\nc = Relu(x)\ny = Reshape(c, target)\n");
}

TEST(Reshape, ZeroMeansTheSizeOfTheInnerOne) {
  ModelBuilder b = with_input({n, 6});
  b.initializer("axes", ints({0})).initializer("target", ints({0, -1}));
  b.node("Unsqueeze", {"x", "axes"}, {"a"});
  b.node("Reshape", {"a", "target"}, {"y"});
  b.output("y");
  EXPECT_EQ(optimized(b, {"reshape"}),
            "initializer /constant/tenon_0: tensor(int64) [2] = [1, -1]\ny = Reshape(x, /constant/tenon_0)\n");
}

TEST(Reshape, AnyTwoBecomeOne) {
  ModelBuilder b = with_input({n, 6, 1});
  b.initializer("last", ints({-1})).initializer("second", ints({1}));
  b.node("Squeeze", {"x", "last"}, {"a"});
  b.node("Unsqueeze", {"a", "second"}, {"y"});
  b.output("y");
  EXPECT_EQ(change_by_extended(b), 0);
  EXPECT_EQ(optimized(b, {"reshape"}),
            "initializer /constant/tenon_0: tensor(int64) [3] = [0, 1, 6]\ny = Reshape(x, /constant/tenon_0)\n");
}

TEST(Reshape, TwoStayWhereOneCannotBeTold) {
  ModelBuilder b = with_input({n, Dim::symbol("m"), Dim::symbol("k"), 1});
  b.initializer("last", ints({-1})).initializer("first", ints({0}));
  b.node("Squeeze", {"x", "last"}, {"a"});
  b.node("Unsqueeze", {"a", "first"}, {"y"});  // [1, n, m, k]
  b.output("y");
  EXPECT_NE(optimized(b, {"reshape"}).find("y = Unsqueeze(a, first)"), std::string::npos);
}

TEST(NoOp, AReductionOfOneNumberIsThatNumber) {
  const auto reduction = [](int64_t axis, int64_t keep) {
    ModelBuilder b = with_input({n, 1, 6});
    b.initializer("axes", ints({axis}));
    b.node("ReduceMean", {"x", "axes"}, {"a"}).set_attribute({"keepdims", keep});
    b.node("Relu", {"a"}, {"y"});
    b.output("y");
    return b;
  };
  const auto nodes = [&](int64_t axis, int64_t keep) {
    ModelBuilder b = reduction(axis, keep);
    const std::string text = optimized(b, {"no-op", "dead-code"});
    return text.substr(text.rfind("]\n") == std::string::npos ? 0 : text.rfind("]\n") + 2);
  };
  EXPECT_EQ(change_by_extended(reduction(1, 1)), 0);
  EXPECT_EQ(change_by_extended(reduction(1, 0)), 0);
  EXPECT_EQ(nodes(1, 1), "y = Relu(x)\n");
  EXPECT_EQ(nodes(1, 0), "a = Squeeze(x, /constant/tenon_0)\ny = Relu(a)\n");
  EXPECT_EQ(nodes(2, 0), "a = ReduceMean(x, axes) {keepdims=0}\ny = Relu(a)\n");
  EXPECT_EQ(nodes(0, 1), "a = ReduceMean(x, axes) {keepdims=1}\ny = Relu(a)\n");
}

// Reshape of [n, m, 12] to what is computed from the shape: n, m, and numbers.
std::string reshape_to(const std::vector<std::string>& parts, bool declared_empty = false) {
  ModelBuilder b = with_input({n, m, declared_empty ? 0 : 12});
  b.initializer("0", ints({0})).initializer("1", ints({1})).initializer("2", ints({2}));
  b.initializer("3", ints({3})).initializer("4", ints({4})).initializer("12", ints({12})).initializer("-1", ints({-1}));
  b.node("Shape", {"x"}, {"shape"});
  b.node("Gather", {"shape", "0"}, {"n"});
  b.node("Gather", {"shape", "1"}, {"m"});
  b.node("Mul", {"n", "m"}, {"n*m"});
  b.node("Concat", parts, {"target"}).set_attribute({"axis", int64_t{0}});
  b.node("Reshape", {"x", "target"}, {"y"});
  b.output("y");
  std::string text = optimized(b, {"reshape-target", "dead-code"});
  size_t from = text.find("[", text.find("= ["));
  return text.find("Concat") == std::string::npos ? text.substr(from, text.find("\n") - from) : "computed";
}

TEST(ReshapeTarget, IsWrittenWithZeroAndMinusOne) {
  EXPECT_EQ(reshape_to({"n", "m", "3", "4"}), "[0, 0, 3, 4]");
  EXPECT_EQ(reshape_to({"n*m", "12"}), "[-1, 12]");
  EXPECT_EQ(reshape_to({"n", "m", "-1", "4"}), "[0, 0, 3, 4]");
  EXPECT_EQ(reshape_to({"m", "n", "12"}), "computed");
  EXPECT_EQ(reshape_to({"12", "n*m"}), "[12, -1]");
}

TEST(Slice, Merges) {
  auto text = [](std::initializer_list<int64_t> from, std::initializer_list<int64_t> to, int64_t axis) {
    ModelBuilder b = with_input({10, 10});
    b.initializer("b1", ints({2})).initializer("e1", ints({8})).initializer("a1", ints({0}));
    b.initializer("b2", ints(from)).initializer("e2", ints(to)).initializer("a2", ints({axis}));
    b.node("Slice", {"x", "b1", "e1", "a1"}, {"a"});
    b.node("Slice", {"a", "b2", "e2", "a2"}, {"y"});
    b.output("y");
    return optimized(b, {"slice"});
  };
  EXPECT_NE(text({1}, {3}, 0).find("= [3]"), std::string::npos);
  EXPECT_NE(text({1}, {3}, 0).find("= [5]"), std::string::npos);
  EXPECT_NE(text({1}, {100}, 0).find("= [8]"), std::string::npos);
  EXPECT_NE(text({1}, {3}, 1).find("= [0, 1]"), std::string::npos);
  EXPECT_NE(text({-2}, {-1}, 0).find("a = Slice(x, b1, e1, a1)"), std::string::npos);
}

TEST(Slice, MergesIntoAllThatReadIt) {
  const auto text = [](const char* other) {
    ModelBuilder b = with_input({10, 10});
    b.initializer("two", ints({2})).initializer("eight", ints({8})).initializer("zero", ints({0}));
    b.initializer("one", ints({1}));
    b.node("Slice", {"x", "two", "eight", "zero"}, {"a"});
    b.node("Slice", {"a", "two", "eight", "one"}, {"y"});
    if (std::string_view(other) == "Slice")
      b.node("Slice", {"a", "one", "two", "zero"}, {"z"});
    else
      b.node(other, {"a"}, {"z"});
    b.output("y").output("z");
    return optimized(b, {"slice"});
  };
  EXPECT_EQ(text("Slice").find("a = Slice"), std::string::npos);
  EXPECT_NE(text("Relu").find("y = Slice(a"), std::string::npos);
}

ModelBuilder transposed(const std::vector<std::vector<int64_t>>& orders, SymbolicShape shape) {
  ModelBuilder b = with_input(std::move(shape));
  std::string last = "x";
  for (const auto& order : orders) {
    std::string next = "t" + std::to_string(&order - orders.data());
    b.node("Transpose", {last}, {next}).set_attribute({"perm", order});
    last = next;
  }
  b.node("Relu", {last}, {"y"});
  b.output("y");
  return b;
}

TEST(Transpose, MergesCancelsAndBecomesReshape) {
  ModelBuilder cancel = transposed({{0, 2, 1}, {0, 2, 1}}, {n, 2, 3}),
               merge = transposed({{1, 0, 2}, {0, 2, 1}}, {n, 2, 3}), ones = transposed({{1, 0, 2}}, {1, n, 3}),
               two_symbols = transposed({{1, 0, 2}}, {1, n, m});
  EXPECT_EQ(optimized(cancel, {"transpose"}), "y = Relu(x)\n");
  EXPECT_EQ(optimized(merge, {"transpose"}), "t1 = Transpose(x) {perm=[1, 2, 0]}\ny = Relu(t1)\n");
  EXPECT_EQ(optimized(ones, {"transpose"}),
            "initializer /constant/tenon_0: tensor(int64) [3] = [-1, 1, 3]\n"
            "t0 = Reshape(x, /constant/tenon_0)\ny = Relu(t0)\n");
  EXPECT_EQ(optimized(two_symbols, {"transpose"}), "t0 = Transpose(x) {perm=[1, 0, 2]}\ny = Relu(t0)\n");
}

TEST(CancelTransposes, ThroughElementwiseNodesAndConstants) {
  ModelBuilder b = with_input({n, 2, 4, 4});
  b.initializer("bias", Tensor({2}, {1.0f, 2.0f}));
  b.node("Transpose", {"x"}, {"a"}).set_attribute({"perm", std::vector<int64_t>{0, 2, 3, 1}});
  b.node("Add", {"a", "bias"}, {"b"});
  b.node("Sigmoid", {"b"}, {"c"});
  b.node("Softmax", {"c"}, {"d"}).set_attribute({"axis", int64_t{-1}});
  b.node("Transpose", {"d"}, {"y"}).set_attribute({"perm", std::vector<int64_t>{0, 3, 1, 2}});
  b.output("y");
  EXPECT_EQ(optimized(b, {"cancel-transposes", "fold-constants"}),
            "initializer /Transpose/tenon_1: tensor(float) [1, 2, 1, 1]\n"
            "/Add/tenon_2 = Add(x, /Transpose/tenon_1)\n"
            "/Sigmoid/tenon_3 = Sigmoid(/Add/tenon_2)\n"
            "y = Softmax(/Sigmoid/tenon_3) {axis=1}\n");
}

TEST(CancelTransposes, StaysWhereAnotherNeedsTheMiddle) {
  ModelBuilder b = with_input({n, 2, 3});
  b.node("Transpose", {"x"}, {"a"}).set_attribute({"perm", std::vector<int64_t>{0, 2, 1}});
  b.node("Relu", {"a"}, {"b"});
  b.node("Transpose", {"b"}, {"y"}).set_attribute({"perm", std::vector<int64_t>{0, 2, 1}});
  b.output("y").output("b");
  EXPECT_NE(optimized(b, {"cancel-transposes"}).find("y = Transpose(b)"), std::string::npos);
}

TEST(CancelTransposes, ThroughReductions) {
  ModelBuilder b = with_input({n, 2, 4, 5});
  b.initializer("axes", ints({1, 2}));
  b.node("Transpose", {"x"}, {"a"}).set_attribute({"perm", std::vector<int64_t>{0, 2, 3, 1}});
  b.node("ReduceMean", {"a", "axes"}, {"b"});
  b.node("Transpose", {"b"}, {"y"}).set_attribute({"perm", std::vector<int64_t>{0, 3, 1, 2}});
  b.output("y");
  EXPECT_EQ(optimized(b, {"cancel-transposes"}),
            "initializer /constant/tenon_0: tensor(int64) [2] = [2, 3]\ny = ReduceMean(x, /constant/tenon_0)\n");
}

TEST(ReduceTranspose, WhereTheOtherAxesKeepTheirOrder) {
  auto model = [](std::initializer_list<int64_t> axes) {
    ModelBuilder b = with_input({n, 2, 4, 5});
    b.initializer("axes", ints(axes));
    b.node("Transpose", {"x"}, {"a"}).set_attribute({"perm", std::vector<int64_t>{0, 2, 3, 1}});
    b.node("ReduceSum", {"a", "axes"}, {"y"}).set_attribute({"keepdims", int64_t{0}});
    b.output("y");
    return b;
  };
  ModelBuilder image = model({1, 2}), row = model({1});
  EXPECT_EQ(optimized(image, {"reduce-transpose"}),
            "initializer /constant/tenon_0: tensor(int64) [2] = [2, 3]\n"
            "y = ReduceSum(x, /constant/tenon_0) {keepdims=0}\n");
  EXPECT_NE(optimized(row, {"reduce-transpose"}).find("Transpose"), std::string::npos);
}

TEST(GemmTranspose, GoesIntoTheAttribute) {
  ModelBuilder b = with_input({2, n});
  b.input("w", ElementType::float32, SymbolicShape{2, 3});
  b.node("Transpose", {"x"}, {"a"});
  b.node("Gemm", {"a", "w"}, {"y"});
  b.output("y");
  EXPECT_EQ(optimized(b, {"gemm-transpose"}), "y = Gemm(x, w) {transA=1, transB=0}\n");
}

TEST(SoftmaxFlatten, OnlyAroundTheLastAxis) {
  auto model = [](int64_t axis) {
    ModelBuilder b = with_input({n, 2, 3});
    b.node("Shape", {"x"}, {"shape"});
    b.node("Flatten", {"x"}, {"flat"}).set_attribute({"axis", axis});
    b.node("Softmax", {"flat"}, {"s"});
    b.node("Reshape", {"s", "shape"}, {"y"});
    b.output("y");
    return b;
  };
  ModelBuilder last = model(2), first = model(1);
  EXPECT_EQ(optimized(last, {"softmax-flatten"}), "y = Softmax(x) {axis=-1}\n");
  EXPECT_NE(optimized(first, {"softmax-flatten"}).find("Flatten"), std::string::npos);
}

TEST(ConstantIf, BecomesItsBranch) {
  ModelBuilder b = with_input({2});
  b.initializer("c", Tensor(Shape{}, {true}));
  ir::Node& node = b.node("If", {"c"}, {"y"});
  for (const char* branch : {"then_branch", "else_branch"}) {
    auto graph = std::make_unique<ir::Graph>();
    ir::Value& result = graph->add_value("result");
    ir::Value& two = graph->add_constant(Tensor::scalar(2.0f), "two");
    ir::Node& inner = graph->add_node(std::string(branch) == "then_branch" ? "Mul" : "Add");
    inner.add_input(&b.value("x"));
    inner.add_input(&two);
    inner.add_output(&result);
    graph->add_output(result);
    node.set_attribute({branch, std::move(graph)});
  }
  b.output("y");
  EXPECT_EQ(optimized(b, {"constant-if", "identity"}),
            "initializer /constant/tenon_0: tensor(float) [] = 2\ny = Mul(x, /constant/tenon_0)\n");
}

}  // namespace
}  // namespace tenon

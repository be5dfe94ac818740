#include <gtest/gtest.h>

#include "pass_test.h"

namespace tenon {
namespace {

const Dim batch = Dim::symbol("batch"), sequence = Dim::symbol("sequence");
const std::vector<std::string> passes = {"skip-layer-norm"};

// x + skip, normalised.
ModelBuilder sum_of(const SymbolicShape& x, const SymbolicShape& skip, const std::string& norm = "LayerNormalization") {
  ModelBuilder b;
  b.input("x", ElementType::float32, x).input("skip", ElementType::float32, skip);
  b.initializer("scale", Tensor({4}, {1.0f, 2.0f, -1.0f, 0.5f}));
  b.initializer("shift", Tensor({4}, {0.0f, 1.0f, 2.0f, 3.0f}));
  b.node("Add", {"x", "skip"}, {"sum"});
  ir::Node& node = b.node(norm,
                          norm == "LayerNormalization" ? std::vector<std::string>{"sum", "scale", "shift"}
                                                       : std::vector<std::string>{"sum", "scale"},
                          {"y"});
  node.set_attribute({"epsilon", 0.5f});
  b.output("y");
  return b;
}

std::string nodes(const std::string& text) {
  size_t start = 0;
  while (text.compare(start, 11, "initializer") == 0) start = text.find('\n', start) + 1;
  return text.substr(start);
}

TEST(SkipLayerNorm, SumIsAnOutputWhereItIsUsed) {
  const SymbolicShape shape{batch, sequence, 4};
  ModelBuilder alone = sum_of(shape, shape), used = sum_of(shape, shape),
               rms = sum_of(shape, shape, "RMSNormalization");
  used.node("Relu", {"sum"}, {"z"});
  used.output("z").output("sum");
  rms.output("sum");
  for (ModelBuilder* b : {&alone, &used, &rms}) EXPECT_LT(change_by_extended(*b), 1e-5);
  EXPECT_EQ(nodes(optimized(alone, passes)),
            "y = tenon.SkipLayerNormalization(x, skip, scale, shift) {axis=-1, epsilon=0.5}\n");
  EXPECT_EQ(nodes(optimized(used, passes)),
            "y, sum = tenon.SkipLayerNormalization(x, skip, scale, shift) {axis=-1, epsilon=0.5}\nz = Relu(sum)\n");
  EXPECT_EQ(nodes(optimized(rms, passes)),
            "y, sum = tenon.SkipRMSNormalization(x, skip, scale) {axis=-1, epsilon=0.5}\n");
}

// The Relu, which reads the sum, comes before the normalisation.
TEST(SkipLayerNorm, UsersOfTheSumMayComeFirst) {
  ModelBuilder b;
  b.input("x", ElementType::float32, SymbolicShape{2, 4}).input("skip", ElementType::float32, SymbolicShape{2, 4});
  b.initializer("scale", Tensor({4}, {1.0f, 2.0f, -1.0f, 0.5f}));
  b.node("Add", {"x", "skip"}, {"sum"});
  b.node("Relu", {"sum"}, {"z"});
  b.node("LayerNormalization", {"sum", "scale"}, {"n"});
  b.node("Add", {"n", "z"}, {"y"});
  b.output("y");
  EXPECT_LT(change_by_extended(b), 1e-5);
  EXPECT_EQ(nodes(optimized(b, passes)),
            "n, sum = tenon.SkipLayerNormalization(x, skip, scale) {axis=-1, epsilon=1e-05}\nz = Relu(sum)\n"
            "y = Add(n, z)\n");
}

TEST(SkipLayerNorm, TakesABiasAndWhatIsRepeated) {
  const SymbolicShape shape{batch, sequence, 4};
  ModelBuilder positions = sum_of({1, sequence, 4}, shape);
  EXPECT_LT(change_by_extended(positions), 1e-5);
  EXPECT_EQ(nodes(optimized(positions, passes)),
            "y = tenon.SkipLayerNormalization(skip, x, scale, shift) {axis=-1, epsilon=0.5}\n");
  for (const char* biased : {"x", "skip"}) {
    ModelBuilder b;
    const std::string other = biased == std::string("x") ? "skip" : "x";
    b.input("x", ElementType::float32, shape).input("skip", ElementType::float32, shape);
    b.initializer("bias", Tensor({4}, {1.0f, 2.0f, 3.0f, 4.0f}))
        .initializer("scale", Tensor({4}, {1.0f, 2.0f, 3.0f, 4.0f}));
    b.node("Add", {biased, "bias"}, {"biased"});
    b.node("Add", {"biased", other}, {"sum"});
    b.node("RMSNormalization", {"sum", "scale"}, {"y"});
    b.output("y");
    EXPECT_LT(change_by_extended(b), 1e-5);
    EXPECT_EQ(nodes(optimized(b, passes)), "y = tenon.SkipRMSNormalization(" + std::string(biased) + ", " + other +
                                               ", scale, bias) {axis=-1, epsilon=1e-05}\n");
  }
}

TEST(SkipLayerNorm, NotOfOtherShapesOrTypesOrWithStatistics) {
  auto unchanged = [](ModelBuilder b) {
    optimized(b, passes);
    return last_rewrites().empty();
  };
  EXPECT_TRUE(unchanged(sum_of({batch, sequence, 4}, {batch, 1, 4})));
  EXPECT_TRUE(unchanged(sum_of({batch, sequence, 4}, {sequence, 1})));
  EXPECT_TRUE(unchanged(sum_of({batch, 1, 4}, {1, sequence, 4})));
  ModelBuilder statistics = sum_of({batch, 4}, {batch, 4});
  statistics.graph().nodes().back().add_output(&statistics.value("mean"));
  statistics.output("mean");
  EXPECT_TRUE(unchanged(std::move(statistics)));
  ModelBuilder wide;
  wide.input("x", ElementType::float64, SymbolicShape{2, 1}).input("skip", ElementType::float64, SymbolicShape{2, 1});
  wide.initializer("scale", Tensor({1}, {1.0}));
  wide.node("Add", {"x", "skip"}, {"sum"});
  wide.node("LayerNormalization", {"sum", "scale"}, {"y"});
  wide.output("y");
  EXPECT_TRUE(unchanged(std::move(wide)));
  ModelBuilder computed;
  for (const char* name : {"x", "skip"}) computed.input(name, ElementType::float32, SymbolicShape{2, 4});
  computed.input("scale", ElementType::float32, SymbolicShape{4});
  computed.node("Add", {"x", "skip"}, {"sum"});
  computed.node("LayerNormalization", {"sum", "scale"}, {"y"});
  computed.output("y");
  EXPECT_TRUE(unchanged(std::move(computed)));
}

// A product takes its residual itself.
TEST(SkipLayerNorm, LeavesResidualsToMatMul) {
  ModelBuilder b;
  b.input("x", ElementType::float32, SymbolicShape{batch, 2})
      .input("skip", ElementType::float32, SymbolicShape{batch, 2});
  b.initializer("w", Tensor({2, 2}, {1.0f, 2.0f, 3.0f, 4.0f})).initializer("scale", Tensor({2}, {1.0f, 2.0f}));
  b.node("MatMul", {"x", "w"}, {"product"});
  b.node("Add", {"product", "skip"}, {"sum"});
  b.node("LayerNormalization", {"sum", "scale"}, {"y"});
  b.output("y");
  EXPECT_EQ(nodes(optimized(b, {"skip-layer-norm", "matmul-epilogue"})),
            "sum = tenon.FusedMatMul(x, w, _, skip)\ny = LayerNormalization(sum, scale)\n");
}

}  // namespace
}  // namespace tenon

// What the optimiser makes of graphs for a GPU, on the stand-in for NVIDIA's libraries (tests/cuda).
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "model_builder.h"
#include "random_floats.h"
#include "tenon/device.h"
#include "tenon/session.h"

namespace tenon {
namespace {

using Ints = std::vector<int64_t>;
using Ops = std::vector<std::string>;

const Dim batch = Dim::symbol("batch"), length = Dim::symbol("length");

Tensor random_tensor(Shape shape, unsigned seed) {
  Tensor tensor(ElementType::float32, shape);
  const std::vector<float> numbers = random_floats(shape.elements(), seed);
  std::ranges::copy(numbers, tensor.mutable_data<float>().begin());
  return tensor;
}

// What the nodes on the GPU are. The results must be the CPU's.
Ops on_gpu(const ModelBuilder& b, const Tensor& x, Precision precision = Precision::full) {
  SessionOptions options;
  options.providers = {"cuda", "cpu"};
  options.precision = precision;
  const Session session = b.session(options);
  const Tensor expected = b.session().run({{"x", x}}).at("y").tensor();
  for (int run = 0; run < 3; ++run) {
    const Tensor actual = session.run({{"x", x}}).at("y").tensor();
    EXPECT_EQ(actual.shape(), expected.shape());
    for (size_t i = 0; i < expected.data<float>().size(); ++i)
      EXPECT_NEAR(actual.data<float>()[i], expected.data<float>()[i], 1e-4f) << "run " << run << ", element " << i;
  }
  Ops ops;
  for (const NodePlacement& node : session.placement()) {
    if (node.provider == "cuda") ops.push_back(node.op_type);
  }
  return ops;
}

void add_conv(ModelBuilder& b, const std::string& from, const std::string& to, Shape weights, int64_t stride,
              int64_t groups = 1) {
  const auto seed = static_cast<unsigned>(weights.elements());
  b.initializer("w_" + to, random_tensor(weights, seed));
  b.initializer("b_" + to, random_tensor(Shape{weights[0]}, seed + 1));
  ir::Node& node = b.node("Conv", {from, "w_" + to, "b_" + to}, {to});
  node.set_attribute({"group", groups});
  node.set_attribute({"pads", Ints(4, weights[2] / 2)});
  node.set_attribute({"strides", Ints(2, stride)});
}

TEST(CudaGraphs, ConvolutionsAndWhatIsBetweenThemHaveChannelsLast) {
  ModelBuilder b;
  b.input("x", ElementType::float32, SymbolicShape{batch, 3, 9, 7});
  add_conv(b, "x", "first", Shape{16, 3, 3, 3}, 2);
  b.node("Relu", {"first"}, {"first_relu"});
  add_conv(b, "first_relu", "deep", Shape{16, 1, 3, 3}, 1, 16);
  b.node("HardSwish", {"deep"}, {"deep_swish"});
  add_conv(b, "deep_swish", "thin", Shape{16, 16, 1, 1}, 1);
  b.node("Add", {"thin", "first_relu"}, {"sum"});
  b.node("MaxPool", {"sum"}, {"pooled"}).set_attribute({"kernel_shape", Ints{2, 2}});
  b.node("AveragePool", {"pooled"}, {"means"}).set_attribute({"kernel_shape", Ints{2, 1}});
  b.node("GlobalAveragePool", {"means"}, {"mean"});
  add_conv(b, "mean", "gate", Shape{16, 16, 1, 1}, 1);
  b.node("Sigmoid", {"gate"}, {"share"});
  b.node("Mul", {"means", "share"}, {"y"});
  b.output("y");
  // They are worth it on tensor cores, to which products of float32 are rounded (the stand-in's are not).
  const Ops ops = on_gpu(b, random_tensor(Shape{2, 3, 9, 7}, 1), Precision::fast);
  EXPECT_EQ(std::ranges::count(ops, "ChannelsLastConv"), 4);
  EXPECT_EQ(std::ranges::count(ops, "ChannelsLastMaxPool"), 1);
  EXPECT_EQ(std::ranges::count(ops, "ChannelsLastAveragePool"), 1);
  EXPECT_EQ(std::ranges::count(ops, "Transpose"), 2) << "at the beginning and at the end";
  EXPECT_EQ(std::ranges::count(ops, "Add") + std::ranges::count(ops, "Relu"), 0) << "part of convolutions";
}

// The weights are turned around once, when the session is made, if products may round (the stand-in's do not).
TEST(CudaGraphs, WeightsOfRoundedProductsLieByColumns) {
  ModelBuilder b;
  b.input("x", ElementType::float32, SymbolicShape{batch, 6, 8});
  b.initializer("w", random_tensor(Shape{8, 12}, 2)).initializer("v", random_tensor(Shape{12, 5}, 3));
  b.node("MatMul", {"x", "w"}, {"first"});
  b.node("Relu", {"first"}, {"relu"});
  b.node("MatMul", {"relu", "v"}, {"y"});
  b.output("y");
  const Tensor x = random_tensor(Shape{2, 6, 8}, 1);
  EXPECT_EQ(on_gpu(b, x), (Ops{"FusedMatMul", "MatMul"}));
  EXPECT_EQ(on_gpu(b, x, Precision::fast), (Ops{"FusedMatMul", "FusedMatMul"}));
}

// As in MobileNetV3: what the gate is made of is small, and computed where it is multiplied.
TEST(CudaGraphs, AGateIsComputedWhereItIsMultiplied) {
  ModelBuilder b;
  b.input("x", ElementType::float32, SymbolicShape{batch, 3, 9, 7});
  add_conv(b, "x", "first", Shape{16, 3, 3, 3}, 2);
  b.node("GlobalAveragePool", {"first"}, {"mean"});
  add_conv(b, "mean", "gate", Shape{16, 16, 1, 1}, 1);
  b.node("HardSigmoid", {"gate"}, {"share"});
  b.node("Mul", {"first", "share"}, {"scaled"});
  add_conv(b, "scaled", "next", Shape{16, 16, 1, 1}, 1);
  add_conv(b, "next", "y", Shape{8, 16, 1, 1}, 1);
  b.output("y");
  EXPECT_EQ(on_gpu(b, random_tensor(Shape{2, 3, 9, 7}, 1), Precision::fast),
            (Ops{"Transpose", "ChannelsLastConv", "ReduceMean", "ChannelsLastConv", "FusedElementwise",
                 "ChannelsLastConv", "ChannelsLastConv", "Transpose"}));
}

TEST(CudaGraphs, OperandsThatAreBroadcastAreComputedWithTheRest) {
  ModelBuilder b;
  b.input("x", ElementType::float32, SymbolicShape{batch, 5, 7});
  b.initializer("axes", Tensor(Shape{1}, {int64_t{1}}));
  b.node("ReduceMax", {"x", "axes"}, {"most"});
  b.node("Abs", {"most"}, {"size"});
  b.node("Sqrt", {"size"}, {"root"});
  b.node("Mul", {"x", "root"}, {"product"});
  b.node("Tanh", {"product"}, {"y"});
  b.output("y");
  EXPECT_EQ(on_gpu(b, random_tensor(Shape{3, 5, 7}, 1)), (Ops{"ReduceMax", "FusedElementwise"}));
}

// Queries, keys or values of four heads of eight elements: [batch, length, 32] to [batch, 4, length, 8].
void add_heads(ModelBuilder& b, const std::string& rows, const std::string& heads) {
  b.node("Reshape", {rows, "split"}, {rows + "_split"});
  b.node("Transpose", {rows + "_split"}, {heads}).set_attribute({"perm", Ints{0, 2, 1, 3}});
}

void add_attention(ModelBuilder& b) {
  b.node("Transpose", {"k"}, {"kt"}).set_attribute({"perm", Ints{0, 1, 3, 2}});
  b.node("MatMul", {"q", "kt"}, {"scores"});
  b.node("Softmax", {"scores"}, {"weights"}).set_attribute({"axis", int64_t{-1}});
  b.node("MatMul", {"weights", "v"}, {"heads"});
}

TEST(CudaGraphs, QueriesKeysAndValuesAreOneProduct) {
  for (bool has_bias : {false, true}) {
    ModelBuilder b;
    b.input("x", ElementType::float32, SymbolicShape{batch, length, 32});
    b.initializer("split", Tensor(Shape{4}, {int64_t{0}, int64_t{0}, int64_t{4}, int64_t{8}}));
    b.initializer("joined", Tensor(Shape{3}, {int64_t{0}, int64_t{0}, int64_t{32}}));
    unsigned seed = 3;
    for (const std::string name : {"q", "k", "v"}) {
      b.initializer("w_" + name, random_tensor(Shape{32, 32}, ++seed));
      b.initializer("b_" + name, random_tensor(Shape{32}, ++seed));
      b.node("MatMul", {"x", "w_" + name}, {has_bias ? name + "_product" : name + "_rows"});
      if (has_bias) b.node("Add", {name + "_product", "b_" + name}, {name + "_rows"});
      add_heads(b, name + "_rows", name);
    }
    add_attention(b);
    b.node("Transpose", {"heads"}, {"rows"}).set_attribute({"perm", Ints{0, 2, 1, 3}});
    b.node("Reshape", {"rows", "joined"}, {"y"});
    b.output("y");
    const Ops expected{has_bias ? "FusedMatMul" : "MatMul", "PackedAttention"};
    EXPECT_EQ(on_gpu(b, random_tensor(Shape{2, 5, 32}, 1)), expected);
    EXPECT_EQ(on_gpu(b, random_tensor(Shape{1, 70, 32}, 2)), expected);
  }
}

// As vision transformers are exported: the length first, the three parts by Gather, heads and batch as one axis, and a
// Gemm of flattened rows at the end.
TEST(CudaGraphs, AttentionOfOneProductOfTransposedRows) {
  ModelBuilder b;
  b.input("x", ElementType::float32, SymbolicShape{batch, 17, 32});
  b.initializer("w", random_tensor(Shape{32, 96}, 4)).initializer("w_out", random_tensor(Shape{32, 32}, 5));
  b.initializer("b_out", random_tensor(Shape{32}, 6));
  b.initializer("parts", Tensor(Shape{4}, {int64_t{17}, int64_t{-1}, int64_t{3}, int64_t{32}}));
  b.node("Transpose", {"x"}, {"turned"}).set_attribute({"perm", Ints{1, 0, 2}});
  b.node("MatMul", {"turned", "w"}, {"product"});
  b.node("Reshape", {"product", "parts"}, {"in_parts"});
  b.node("Transpose", {"in_parts"}, {"parts_first"}).set_attribute({"perm", Ints{2, 0, 1, 3}});
  b.initializer("flat_heads", Tensor(Shape{3}, {int64_t{17}, int64_t{-1}, int64_t{8}}));
  b.initializer("heads_apart", Tensor(Shape{4}, {int64_t{-1}, int64_t{4}, int64_t{17}, int64_t{8}}));
  int64_t part = 0;
  for (const std::string name : {"q", "k", "v"}) {
    b.initializer("is_" + name, Tensor::scalar(part++));
    b.node("Gather", {"parts_first", "is_" + name}, {name + "_rows"}).set_attribute({"axis", int64_t{0}});
    b.node("Reshape", {name + "_rows", "flat_heads"}, {name + "_flat"});
    b.node("Transpose", {name + "_flat"}, {name + "_turned"}).set_attribute({"perm", Ints{1, 0, 2}});
    b.node("Reshape", {name + "_turned", "heads_apart"}, {name});
  }
  add_attention(b);
  b.node("Transpose", {"heads"}, {"rows"}).set_attribute({"perm", Ints{2, 0, 1, 3}});
  b.initializer("flat", Tensor(Shape{2}, {int64_t{-1}, int64_t{32}}));
  b.initializer("apart", Tensor(Shape{3}, {int64_t{17}, int64_t{-1}, int64_t{32}}));
  b.node("Reshape", {"rows", "flat"}, {"flat_rows"});
  b.node("Gemm", {"flat_rows", "w_out", "b_out"}, {"gemm"});
  b.node("Reshape", {"gemm", "apart"}, {"result"});
  b.node("Transpose", {"result"}, {"y"}).set_attribute({"perm", Ints{1, 0, 2}});
  b.output("y");
  EXPECT_EQ(on_gpu(b, random_tensor(Shape{3, 17, 32}, 1)), (Ops{"MatMul", "PackedAttention", "FusedMatMul"}));
}

TEST(CudaGraphs, PatchesAreMultiplied) {
  ModelBuilder b;
  b.input("x", ElementType::float32, SymbolicShape{batch, 3, 8, 12});
  add_conv(b, "x", "patches", Shape{6, 3, 4, 4}, 4);
  b.model().graph->nodes().front().set_attribute({"pads", Ints(4, 0)});
  b.initializer("flat", Tensor(Shape{3}, {int64_t{0}, int64_t{6}, int64_t{6}}));
  b.node("Reshape", {"patches", "flat"}, {"columns"});
  b.node("Transpose", {"columns"}, {"y"}).set_attribute({"perm", Ints{0, 2, 1}});
  b.output("y");
  EXPECT_EQ(on_gpu(b, random_tensor(Shape{2, 3, 8, 12}, 1)), (Ops{"Reshape", "Transpose", "Reshape", "FusedMatMul"}));
}

TEST(CudaGraphs, HalfPrecisionIsFusedToo) {
  ModelBuilder b;
  b.input("x", ElementType::float32, SymbolicShape{batch, 16});
  b.initializer("w", random_tensor(Shape{16, 8}, 2)).initializer("b", random_tensor(Shape{8}, 3));
  for (const std::string name : {"x", "w", "b"})
    b.node("Cast", {name}, {name + "_half"}).set_attribute({"to", static_cast<int64_t>(ElementType::float16)});
  b.node("MatMul", {"x_half", "w_half"}, {"product"});
  b.node("Add", {"product", "b_half"}, {"sum"});
  b.node("Gelu", {"sum"}, {"gelu"});
  b.node("Sqrt", {"gelu"}, {"root"});
  b.node("Neg", {"root"}, {"negative"});
  b.node("Cast", {"negative"}, {"y"}).set_attribute({"to", static_cast<int64_t>(ElementType::float32)});
  b.output("y");
  SessionOptions options;
  options.providers = {"cuda", "cpu"};
  const Session session = b.session(options);
  Ops ops;
  for (const NodePlacement& node : session.placement()) ops.push_back(node.op_type);
  EXPECT_EQ(ops, (Ops{"Cast", "FusedMatMul", "FusedElementwise", "Cast"}));
}

// A graph that asks for the size of its input does not bring the input to the host.
TEST(CudaGraphs, InputsOnTheGpuStayThereWhenOnlyTheirShapeIsRead) {
  ModelBuilder b;
  b.input("x", ElementType::float32, SymbolicShape{batch, 2});
  b.node("Shape", {"x"}, {"shape"});
  b.node("ConstantOfShape", {"shape"}, {"ones"}).set_attribute({"value", Tensor(Shape{1}, {1.0f})});
  b.node("Exp", {"x"}, {"e"});
  b.node("Add", {"e", "ones"}, {"y"});
  b.output("y");
  SessionOptions options;
  options.providers = {"cuda", "cpu"};
  const Session session = b.session(options);
  const Tensor x = on_device(Tensor(Shape{1, 2}, {0.0f, 1.0f})),
               y = on_device(Tensor(ElementType::float32, Shape{1, 2}));
  RunOptions run;
  run.destinations["y"] = y;
  for (int i = 0; i < 3; ++i) session.run({{"x", x}}, run);
  const Tensor result = on_host(y);
  EXPECT_NEAR(result.data<float>()[0], 2, 1e-6);
  EXPECT_NEAR(result.data<float>()[1], 1 + std::exp(1.0f), 1e-6);
}

}  // namespace
}  // namespace tenon

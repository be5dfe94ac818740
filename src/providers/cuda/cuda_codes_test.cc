// Models of 8-bit codes on the stand-in for NVIDIA's libraries: the same bits as the CPU's, and nothing in floats that
// the CPU computes in integers.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <random>

#include "model_builder.h"
#include "tenon/session.h"

namespace tenon {
namespace {

using Ints = std::vector<int64_t>;

Tensor random_bytes(ElementType type, Shape shape, uint32_t seed) {
  std::mt19937 random(seed);
  Tensor tensor(type, std::move(shape));
  auto* bytes = static_cast<uint8_t*>(tensor.mutable_raw());
  for (int64_t i = 0; i < tensor.elements(); ++i) bytes[i] = static_cast<uint8_t>(random() % 256);
  return tensor;
}
Tensor random_ints(Shape shape, int range, uint32_t seed) {
  std::mt19937 random(seed);
  Tensor tensor(ElementType::int32, std::move(shape));
  for (int32_t& item : tensor.mutable_data<int32_t>())
    item = static_cast<int32_t>(random() % static_cast<uint32_t>(2 * range)) - range;
  return tensor;
}
Tensor random_floats(Shape shape, float low, float high, uint32_t seed) {
  std::mt19937 random(seed);
  Tensor tensor(ElementType::float32, std::move(shape));
  for (float& item : tensor.mutable_data<float>())
    item = low + (high - low) * static_cast<float>(random() % 1000) / 1000;
  return tensor;
}
Tensor code(ElementType type, int value) {
  Tensor tensor(type, Shape{});
  *static_cast<uint8_t*>(tensor.mutable_raw()) = static_cast<uint8_t>(value);
  return tensor;
}
Tensor number(float value) { return Tensor(Shape{}, {value}); }

// What ran on the GPU, in order. Everything must be there, and have the same bits as on the CPU.
std::vector<std::string> run_both(const ModelBuilder& b, const std::string& tile = "") {
  if (tile.empty())
    unsetenv("TENON_BYTE_TILE");
  else
    setenv("TENON_BYTE_TILE", tile.c_str(), 1);
  SessionOptions options;
  const Session host = b.session(options);
  options.providers = {"cuda", "cpu"};
  const Session device = b.session(options);
  std::vector<std::string> operators;
  for (const NodePlacement& node : device.placement()) {
    EXPECT_EQ(node.provider, "cuda") << node.node;
    operators.push_back(node.op_type);
  }
  NamedValues inputs;
  uint32_t seed = 7;
  for (const ValueInfo& info : host.inputs()) {
    Shape shape;
    for (const std::string& size : info.shape) shape.push_back(std::stoll(size));
    inputs.emplace(info.name, info.element == ElementType::float32 ? random_floats(shape, -2, 2, seed++)
                                                                   : random_bytes(info.element, shape, seed++));
  }
  const NamedValues expected = host.run(inputs);
  // Parts of sums leave their memory as they found it: once more, and then from a recording.
  for (int round = 0; round < 3; ++round) {
    const NamedValues actual = device.run(inputs);
    for (const auto& [name, value] : expected) {
      const Tensor &a = value.tensor(), &c = actual.at(name).tensor();
      EXPECT_EQ(a.shape(), c.shape());
      EXPECT_EQ(a.type(), c.type());
      int64_t different = 0;
      const auto *left = static_cast<const uint8_t*>(a.raw()), *right = static_cast<const uint8_t*>(c.raw());
      for (int64_t i = 0; i < a.bytes(); ++i) different += left[i] != right[i];
      EXPECT_EQ(different, 0) << name << " of " << a.bytes() << " bytes, run " << round;
    }
  }
  return operators;
}

bool contains(const std::vector<std::string>& all, const std::string& wanted) {
  return std::ranges::find(all, wanted) != all.end();
}

struct ConvCase {
  const char* name;
  int64_t images, height, width, channels, outputs, kernel, stride = 1, dilation = 1, pad = 0, groups = 1;
  ElementType x = ElementType::uint8, w = ElementType::int8;
  int w_zero = 0;
  bool per_channel = true, has_bias = true;
  const char* tile = "";
};

void PrintTo(const ConvCase& test, std::ostream* out) { *out << test.name; }

constexpr ElementType u8 = ElementType::uint8, s8 = ElementType::int8;

const ConvCase convolutions[] = {
    {"points", 1, 5, 7, 32, 40, 1},
    {"points_of_few_channels", 2, 5, 5, 12, 17, 1},
    {"points_with_strides", 2, 7, 5, 16, 16, 1, 2},
    {"three_channels", 1, 19, 17, 3, 24, 7, 2, 1, 3},
    {"three_channels_one_by_one", 2, 9, 7, 3, 24, 3, 1, 1, 1},
    {"three_channels_by_fours", 1, 21, 22, 3, 24, 4, 4, 1, 0, 1, s8, s8},
    {"three_channels_dilated", 1, 9, 12, 3, 24, 3, 1, 2, 2},
    {"one_channel", 1, 14, 15, 1, 16, 5, 3, 1, 2},
    {"five_channels", 1, 9, 9, 5, 8, 3, 1, 1, 1},
    {"windows", 2, 9, 7, 16, 72, 3, 1, 1, 1},
    {"windows_with_strides", 1, 11, 13, 24, 16, 3, 2, 1, 1},
    {"dilated", 1, 12, 12, 8, 16, 3, 1, 2, 2},
    {"much_padding", 1, 3, 3, 16, 16, 5, 1, 1, 4},
    {"groups", 1, 6, 6, 32, 48, 3, 1, 1, 1, 4},
    {"signed", 1, 6, 6, 16, 16, 3, 1, 1, 1, 1, s8, s8},
    {"unsigned_weights", 1, 6, 6, 16, 16, 3, 1, 1, 1, 1, u8, u8, 0},
    {"signed_by_unsigned", 1, 6, 6, 16, 16, 3, 1, 1, 1, 1, s8, u8, 0, false},
    {"weights_around_128", 1, 6, 6, 16, 16, 3, 1, 1, 1, 1, u8, u8, 128},
    {"one_scale", 1, 6, 6, 16, 33, 3, 1, 1, 1, 1, u8, s8, 0, false, false},
    {"depthwise", 2, 9, 9, 24, 24, 3, 1, 1, 1, 24},
    {"depthwise_with_strides", 1, 10, 9, 16, 16, 5, 2, 1, 2, 16, s8, s8},
    {"depthwise_dilated", 1, 10, 9, 8, 8, 3, 1, 2, 2, 8},
    {"depthwise_around_100", 1, 8, 8, 12, 12, 3, 1, 1, 1, 12, u8, u8, 100},
    {"depthwise_odd", 1, 7, 7, 5, 5, 3, 1, 1, 1, 5},
    {"tile_0", 1, 10, 10, 48, 136, 3, 1, 1, 1, 1, u8, s8, 0, true, true, "0"},
    {"tile_1", 2, 10, 10, 40, 136, 3, 1, 1, 1, 1, s8, s8, 0, true, true, "1"},
    {"tile_2", 1, 10, 10, 40, 40, 3, 1, 1, 1, 1, u8, s8, 0, true, true, "2"},
    {"tile_3", 2, 10, 10, 48, 40, 3, 1, 1, 1, 1, u8, s8, 0, true, true, "3"},
    {"tile_4", 1, 10, 10, 40, 40, 3, 1, 1, 1, 1, s8, s8, 0, true, true, "4"},
    {"tile_5", 2, 10, 10, 40, 40, 3, 1, 1, 1, 1, u8, s8, 0, true, true, "5"},
    {"tile_6", 1, 10, 10, 48, 136, 3, 1, 1, 1, 1, u8, s8, 0, true, true, "6"},
    {"tile_7", 2, 10, 10, 40, 136, 3, 1, 1, 1, 1, s8, s8, 0, true, true, "7"},
    {"tile_8", 1, 10, 10, 40, 136, 3, 1, 1, 1, 1, u8, s8, 0, true, true, "8"},
    {"tile_9", 2, 10, 10, 48, 40, 3, 1, 1, 1, 1, u8, s8, 0, true, true, "9"},
    {"tile_10", 1, 10, 10, 40, 40, 3, 1, 1, 1, 1, s8, s8, 0, true, true, "10"},
    {"tile_11", 2, 10, 10, 40, 40, 3, 1, 1, 1, 1, u8, s8, 0, true, true, "11"},
    {"tile_12", 1, 10, 10, 48, 136, 3, 1, 1, 1, 1, u8, s8, 0, true, true, "12"},
    {"tile_13", 2, 10, 10, 40, 136, 3, 1, 1, 1, 1, s8, s8, 0, true, true, "13"},
    {"tile_14", 1, 10, 10, 40, 136, 3, 1, 1, 1, 1, u8, s8, 0, true, true, "14"},
    {"tile_15", 2, 10, 10, 48, 200, 3, 1, 1, 1, 1, u8, s8, 0, true, true, "15"},
    {"tile_0_in_parts", 1, 9, 9, 64, 72, 3, 1, 1, 1, 1, u8, s8, 0, true, true, "0x3"},
    {"tile_2_in_parts", 1, 9, 9, 64, 70, 3, 1, 1, 1, 1, u8, s8, 0, true, true, "2x4"},
    {"tile_4_in_parts", 1, 9, 9, 64, 40, 3, 1, 1, 1, 1, u8, s8, 0, true, true, "4x2"},
    {"tile_7_in_parts", 1, 9, 9, 64, 130, 3, 1, 1, 1, 1, u8, s8, 0, true, true, "7x4"},
    {"tile_13_in_parts", 1, 9, 9, 64, 136, 3, 1, 1, 1, 1, u8, s8, 0, true, true, "13x2"},
    {"tile_15_in_parts", 1, 9, 9, 64, 200, 3, 1, 1, 1, 1, u8, s8, 0, true, true, "15x2"},
    {"groups_in_parts", 1, 10, 10, 48, 70, 3, 1, 1, 1, 2, u8, s8, 0, true, true, "4x2"},
    {"tile_2_in_turns", 1, 41, 41, 16, 40, 1, 1, 1, 0, 1, u8, s8, 0, true, true, "2"},
    {"tile_4_in_turns", 1, 41, 41, 16, 40, 3, 1, 1, 1, 1, u8, s8, 0, true, true, "4"},
    {"tile_5_in_turns", 1, 41, 41, 40, 40, 1, 1, 1, 0, 1, u8, s8, 0, true, true, "5"},
    {"tile_13_in_turns", 1, 41, 41, 8, 72, 3, 1, 1, 1, 1, u8, s8, 0, true, true, "13"},
};

// y = QLinearConv(x).
ModelBuilder model_of(const ConvCase& c) {
  ModelBuilder b;
  b.input("x", c.x, SymbolicShape{c.images, c.channels, c.height, c.width});
  b.initializer("x_scale", number(0.02f)).initializer("x_zero", code(c.x, c.x == u8 ? 117 : -5));
  b.initializer("w", random_bytes(c.w, Shape{c.outputs, c.channels / c.groups, c.kernel, c.kernel}, 3));
  b.initializer("w_scale", c.per_channel ? random_floats(Shape{c.outputs}, 0.001f, 0.004f, 4) : number(0.003f));
  b.initializer("w_zero", code(c.w, c.w_zero));
  b.initializer("y_scale", number(0.31f)).initializer("y_zero", code(c.x, c.x == u8 ? 120 : 3));
  std::vector<std::string> inputs = {"x", "x_scale", "x_zero", "w", "w_scale", "w_zero", "y_scale", "y_zero"};
  if (c.has_bias) {
    b.initializer("bias", random_ints(Shape{c.outputs}, 100000, 5));
    inputs.emplace_back("bias");
  }
  ir::Node& node = b.node("QLinearConv", inputs, {"y"});
  node.set_attribute({"group", c.groups});
  node.set_attribute({"pads", Ints(4, c.pad)});
  node.set_attribute({"strides", Ints(2, c.stride)});
  node.set_attribute({"dilations", Ints(2, c.dilation)});
  b.output("y");
  return b;
}

class CudaConvOfCodes : public testing::TestWithParam<ConvCase> {};

TEST_P(CudaConvOfCodes, HasTheBitsOfTheCpu) {
  const std::vector<std::string> operators = run_both(model_of(GetParam()), GetParam().tile);
  EXPECT_TRUE(contains(operators, "QLinearConv"));
  EXPECT_TRUE(contains(operators, "Transpose"));  // to channels last, and back
}

INSTANTIATE_TEST_SUITE_P(All, CudaConvOfCodes, testing::ValuesIn(convolutions),
                         [](const auto& test) { return test.param.name; });

// Weights whose range is wider than that of bytes, less their zero points, are for other kernels.
TEST(CudaCodes, WideWeights) { run_both(model_of({"wide", 1, 6, 6, 16, 16, 3, 1, 1, 1, 1, u8, u8, 100})); }

struct ProductCase {
  const char* name;
  Ints a;
  int64_t columns;
  ElementType a_type = u8, b_type = s8;
  int b_zero = 0;
  const char* tile = "";
};

void PrintTo(const ProductCase& test, std::ostream* out) { *out << test.name; }

const ProductCase products[] = {
    {"rows", {70, 48}, 40},
    {"batch", {2, 3, 20}, 9},
    {"odd", {5, 37}, 11},
    {"one_row", {1, 256}, 130, u8, s8, 0, "7x2"},
    {"signed_by_unsigned", {33, 64}, 64, s8, u8},
    {"around_128", {33, 64}, 64, u8, u8, 128},
    {"wide", {33, 64}, 10, u8, u8, 70},
};

class CudaProductOfCodes : public testing::TestWithParam<ProductCase> {
 protected:
  ModelBuilder builder() const {
    const ProductCase& c = GetParam();
    ModelBuilder b;
    b.model().opset_imports.add("com.microsoft", 1);
    b.input("a", c.a_type, SymbolicShape(c.a.begin(), c.a.end()));
    b.initializer("a_zero", code(c.a_type, 9)).initializer("a_scale", number(0.01f));
    b.initializer("b", random_bytes(c.b_type, Shape{c.a.back(), c.columns}, 6));
    b.initializer("b_zero", code(c.b_type, c.b_zero));
    b.initializer("b_scale", random_floats(Shape{c.columns}, 0.001f, 0.004f, 4));
    return b;
  }
};

TEST_P(CudaProductOfCodes, Sums) {
  ModelBuilder b = builder();
  b.node("MatMulInteger", {"a", "b", "a_zero", "b_zero"}, {"y"});
  b.output("y");
  run_both(b, GetParam().tile);
}

TEST_P(CudaProductOfCodes, Codes) {
  ModelBuilder b = builder();
  b.initializer("y_scale", number(0.05f)).initializer("y_zero", code(u8, 77));
  b.initializer("all_b_zero", code(GetParam().b_type, GetParam().b_zero));
  b.initializer("one_scale", number(0.002f));
  b.node("QLinearMatMul", {"a", "a_scale", "a_zero", "b", "one_scale", "all_b_zero", "y_scale", "y_zero"}, {"y"});
  b.output("y");
  run_both(b, GetParam().tile);
}

TEST_P(CudaProductOfCodes, Numbers) {
  ModelBuilder b = builder();
  b.initializer("bias", random_floats(Shape{GetParam().columns}, -1, 1, 8));
  b.node("MatMulIntegerToFloat", {"a", "b", "a_scale", "b_scale", "a_zero", "b_zero", "bias"}, {"y"}, "",
         "com.microsoft");
  b.output("y");
  const std::vector<std::string> operators = run_both(b, GetParam().tile);
  EXPECT_EQ(contains(operators, "MatMulIntegerToFloat"), std::string(GetParam().name) != "wide");
}

INSTANTIATE_TEST_SUITE_P(All, CudaProductOfCodes, testing::ValuesIn(products),
                         [](const auto& test) { return test.param.name; });

// Steps that are quantized: each value NAME is the dequantized NAME_q.
struct Network : ModelBuilder {
  explicit Network(ElementType type) : type_(type) { model().opset_imports.add("com.microsoft", 1); }

  void quantize(const std::string& from, const std::string& to, float scale, int zero) {
    initializer(to + "_scale", number(scale)).initializer(to + "_zero", code(type_, zero));
    node("QuantizeLinear", {from, to + "_scale", to + "_zero"}, {to + "_q"});
    node("DequantizeLinear", {to + "_q", to + "_scale", to + "_zero"}, {to});
  }
  void weights(const std::string& to, Shape shape) {
    const int64_t outputs = shape[0];
    initializer(to + "_q", random_bytes(s8, std::move(shape), 31));
    initializer(to + "_scale", random_floats(Shape{outputs}, 0.002f, 0.004f, 32));
    node("DequantizeLinear", {to + "_q", to + "_scale"}, {to}).set_attribute({"axis", int64_t{0}});
  }
  void conv(const std::string& from, const std::string& to, Shape shape, int64_t groups = 1, int64_t stride = 1) {
    const int64_t pad = shape[2] / 2, outputs = shape[0];
    weights(to + "_w", std::move(shape));
    initializer(to + "_b", random_floats(Shape{outputs}, -1, 1, 33));
    ir::Node& added = node("Conv", {from, to + "_w", to + "_b"}, {to});
    added.set_attribute({"pads", Ints(4, pad)});
    added.set_attribute({"group", groups});
    added.set_attribute({"strides", Ints(2, stride)});
  }
  void unary(const char* op, const std::string& from, const std::string& to) { node(op, {from}, {to}); }

  int zero() const { return type_ == u8 ? 110 : -4; }
  int lowest() const { return type_ == u8 ? 0 : -128; }

 private:
  ElementType type_;
};

// A small residual network, as onnxruntime quantizes it.
Network residual_network(ElementType type) {
  Network n(type);
  n.input("image", ElementType::float32, SymbolicShape{2, 3, 17, 17});
  n.quantize("image", "x", 0.02f, n.zero());
  n.conv("x", "stem", Shape{16, 3, 3, 3}, 1, 2);
  n.unary("Relu", "stem", "stem_relu");
  n.quantize("stem_relu", "a", 0.05f, n.lowest());
  n.node("MaxPool", {"a"}, {"pooled"}).set_attribute({"kernel_shape", Ints{2, 2}});
  n.quantize("pooled", "b", 0.05f, n.lowest());
  n.conv("b", "narrow", Shape{32, 16, 1, 1});
  n.quantize("narrow", "c", 0.1f, n.zero());
  n.conv("b", "side", Shape{32, 16, 3, 3});
  n.quantize("side", "d", 0.11f, n.zero());
  n.node("Add", {"c", "d"}, {"sum"});
  n.unary("Relu", "sum", "sum_relu");
  n.quantize("sum_relu", "e", 0.09f, n.lowest());
  n.conv("e", "depthwise", Shape{32, 1, 3, 3}, 32);
  n.quantize("depthwise", "f0", 0.1f, n.zero());
  n.unary("Sigmoid", "f0", "sigmoid");
  n.quantize("sigmoid", "f1", 0.004f, n.lowest());
  n.conv("f1", "after", Shape{32, 32, 1, 1});
  n.quantize("after", "f", 0.05f, n.zero());
  n.unary("HardSwish", "f", "swish");
  n.quantize("swish", "g", 0.07f, n.zero());
  n.node("Concat", {"g", "e"}, {"both"}).set_attribute({"axis", int64_t{1}});
  n.quantize("both", "h", 0.09f, n.zero());
  n.unary("GlobalAveragePool", "h", "mean");
  n.quantize("mean", "i", 0.05f, n.zero());
  n.unary("Flatten", "i", "flat");
  n.quantize("flat", "j", 0.05f, n.zero());
  n.weights("fc_w", Shape{10, 64});
  n.initializer("fc_b", random_floats(Shape{10}, -1, 1, 40));
  n.node("Gemm", {"j", "fc_w", "fc_b"}, {"y"}).set_attribute({"transB", int64_t{1}});
  n.output("y");
  return n;
}

TEST(CudaCodes, ANetworkComputesInIntegersAlone) {
  for (ElementType type : {u8, s8}) {
    const std::vector<std::string> operators = run_both(residual_network(type));
    // The first convolution makes codes of the image, the last product floats.
    EXPECT_EQ(std::ranges::count(operators, "QLinearConv"), 5);
    for (const char* op : {"NhwcMaxPool", "QLinearGlobalAveragePool", "MatMulIntegerToFloat"})
      EXPECT_TRUE(contains(operators, op)) << op;
    for (const char* op : {"DequantizeLinear", "Conv", "ChannelsLastConv", "QLinearAdd", "Add", "Sigmoid", "HardSwish",
                           "QuantizeLinear", "Transpose"})
      EXPECT_FALSE(contains(operators, op)) << op;
  }
}

// A block fetches what is added to the rows of its next turn.
TEST(CudaCodes, ResidualsInTurns) {
  for (const auto& [tile, type] : {std::pair{"2", u8}, {"5", s8}, {"10", u8}}) {
    Network n(type);
    n.input("image", ElementType::float32, SymbolicShape{1, 16, 40, 40});
    n.quantize("image", "x", 0.02f, n.zero());
    n.conv("x", "side", Shape{72, 16, 1, 1});
    n.quantize("side", "a", 0.05f, n.zero());
    n.conv("x", "main", Shape{72, 16, 1, 1});
    n.quantize("main", "b", 0.06f, n.zero());
    n.node("Add", {"a", "b"}, {"sum"});
    n.quantize("sum", "y", 0.08f, n.zero());
    n.output("y");
    EXPECT_FALSE(contains(run_both(n, tile), "QLinearAdd")) << tile;
  }
}

TEST(CudaCodes, DynamicQuantization) {
  ModelBuilder b;
  b.input("x", ElementType::float32, SymbolicShape{6, 48});
  b.initializer("w", random_bytes(s8, Shape{48, 20}, 6)).initializer("w_zero", code(s8, 0));
  b.initializer("w_scale", random_floats(Shape{20}, 0.001f, 0.004f, 4));
  b.initializer("bias", random_floats(Shape{20}, -1, 1, 8));
  b.node("DynamicQuantizeLinear", {"x"}, {"codes", "scale", "zero"});
  b.node("MatMulInteger", {"codes", "w", "zero", "w_zero"}, {"sums"});
  b.node("Cast", {"sums"}, {"floats"}).set_attribute({"to", static_cast<int64_t>(ElementType::float32)});
  b.node("Mul", {"scale", "w_scale"}, {"scales"});
  b.node("Mul", {"floats", "scales"}, {"scaled"});
  b.node("Add", {"scaled", "bias"}, {"y"});
  b.output("y");
  const std::vector<std::string> operators = run_both(b);
  EXPECT_EQ(operators, (std::vector<std::string>{"DynamicQuantizeLinear", "MatMulIntegerToFloat"}));
}

// Codes of one, of rows, of columns, and of images.
TEST(CudaCodes, Arithmetic) {
  const std::vector<std::pair<Ints, Ints>> shapes = {
      {{3, 5}, {3, 5}}, {{2, 3, 32}, {32}}, {{2, 3, 32}, {2, 3, 1}}, {{1, 7}, {4, 1}}, {{2, 4, 4, 16}, {2, 1, 1, 16}},
      {{4, 33}, {}}};
  for (const auto& [a, c] : shapes) {
    for (const char* op : {"QLinearAdd", "QLinearMul"}) {
      for (ElementType type : {u8, s8}) {
        ModelBuilder b;
        b.model().opset_imports.add("com.microsoft", 1);
        b.input("a", type, SymbolicShape(a.begin(), a.end())).input("b", type, SymbolicShape(c.begin(), c.end()));
        b.initializer("a_scale", number(0.02f)).initializer("a_zero", code(type, 5));
        b.initializer("b_scale", number(0.03f)).initializer("b_zero", code(type, 100));
        b.initializer("y_scale", number(0.041f)).initializer("y_zero", code(type, 60));
        b.node(op, {"a", "a_scale", "a_zero", "b", "b_scale", "b_zero", "y_scale", "y_zero"}, {"y"}, "",
               "com.microsoft");
        b.output("y");
        EXPECT_EQ(run_both(b), std::vector<std::string>{op});
      }
    }
  }
}

}  // namespace
}  // namespace tenon

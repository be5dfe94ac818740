#include <gtest/gtest.h>

#include <random>

#include "pass_test.h"

namespace tenon {
namespace {

using enum ElementType;

Tensor random_codes(ElementType type, Shape shape, unsigned seed) {
  Tensor tensor(type, std::move(shape));
  std::mt19937 random(seed);
  auto* bytes = static_cast<uint8_t*>(tensor.mutable_raw());
  for (int64_t i = 0; i < tensor.bytes(); ++i) bytes[i] = static_cast<uint8_t>(random());
  return tensor;
}

Tensor scales(Shape shape) {
  Tensor tensor(float32, std::move(shape));
  for (size_t i = 0; i < tensor.data<float>().size(); ++i)
    tensor.mutable_data<float>()[i] = 0.01f * static_cast<float>(i % 7 + 1);
  return tensor;
}

struct Case {
  ElementType type;
  Shape codes, scale;
  int64_t axis, block;
  bool zeros;
};

// x (3, 48) and the dequantized w.
ModelBuilder weights(const Case& c) {
  ModelBuilder b;
  b.input("x", float32, SymbolicShape{3, 48});
  b.initializer("w_q", random_codes(c.type, c.codes, 1)).initializer("w_scale", scales(c.scale));
  std::vector<std::string> inputs = {"w_q", "w_scale"};
  if (c.zeros) {
    b.initializer("w_zero", random_codes(c.type, c.scale, 2));
    inputs.push_back("w_zero");
  }
  ir::Node& dequantize = b.node("DequantizeLinear", inputs, {"w"});
  dequantize.set_attribute({"axis", c.axis});
  if (c.block > 0) dequantize.set_attribute({"block_size", c.block});
  return b;
}

bool runs(const ModelBuilder& b, std::string_view op) {
  SessionOptions options;
  options.level = OptimizationLevel::extended;
  const Session session = b.session(options);
  for (const NodePlacement& node : session.placement()) {
    if (node.op_type == op) return true;
  }
  return false;
}

const Case matrices[] = {
    {int4, {48, 10}, {3, 10}, 0, 16, false}, {uint4, {48, 10}, {3, 10}, 0, 16, true},
    {int2, {48, 9}, {1, 9}, 0, 48, true},    {uint2, {48, 9}, {9}, 1, 0, false},
    {int4, {48, 10}, {10}, 1, 0, true},      {uint4, {48, 10}, {}, 0, 0, true},
    {int8, {48, 10}, {3, 10}, 0, 16, true},  {uint8, {48, 10}, {2, 10}, 0, 32, false},
};

TEST(PackedWeights, MatMul) {
  for (const Case& c : matrices) {
    SCOPED_TRACE(fmt::format("{} in blocks of {}", name_of(c.type), c.block));
    ModelBuilder b = weights(c);
    b.node("MatMul", {"x", "w"}, {"y"});
    b.output("y");
    EXPECT_TRUE(runs(b, "MatMulNBits"));
    EXPECT_LT(change_by_extended(b), 1e-6);
  }
}

TEST(PackedWeights, TransposedAndWithABias) {
  const Case c{int4, {10, 48}, {10, 3}, 1, 16, true};
  for (bool is_gemm : {false, true}) {
    ModelBuilder b = weights(c);
    if (is_gemm) {
      b.initializer("bias", scales({10}));
      b.node("Gemm", {"x", "w", "bias"}, {"y"}).set_attribute({"transB", int64_t{1}});
    } else {
      b.node("Transpose", {"w"}, {"t"}).set_attribute({"perm", std::vector<int64_t>{1, 0}});
      b.node("MatMul", {"x", "t"}, {"y"});
    }
    b.output("y");
    EXPECT_TRUE(runs(b, "MatMulNBits"));
    EXPECT_LT(change_by_extended(b), 1e-6);
  }
}

TEST(PackedWeights, RowsOfATable) {
  for (bool zeros : {false, true}) {
    ModelBuilder b = weights({int4, {10, 64}, {10, 2}, 1, 32, zeros});
    b.input("indices", int64, SymbolicShape{2, 3});
    b.node("Gather", {"w", "indices"}, {"y"});
    b.output("y");
    SessionOptions options;
    options.level = OptimizationLevel::extended;
    const Session session = b.session(options);
    EXPECT_TRUE(std::ranges::any_of(session.rewrites(), [](const Rewrite& r) { return r.pass == "packed-weights"; }));
    EXPECT_LT(change_by_extended(b), 1e-6);
  }
}

TEST(PackedWeights, WhatStays) {
  // Blocks along the other axis, and too small ones.
  const Case cases[] = {{int4, {48, 32}, {48, 2}, 1, 16, false}, {int4, {48, 10}, {6, 10}, 0, 8, false}};
  for (const Case& c : cases) {
    ModelBuilder b = weights(c);
    b.node("MatMul", {"x", "w"}, {"y"});
    b.output("y");
    EXPECT_FALSE(runs(b, "MatMulNBits"));
    EXPECT_LT(change_by_extended(b), 1e-6);
  }
}

}  // namespace
}  // namespace tenon

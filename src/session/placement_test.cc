#include <gtest/gtest.h>

#include "model_builder.h"

namespace tenon {
namespace {

constexpr auto f32 = ElementType::float32, i64 = ElementType::int64, u8 = ElementType::uint8;

struct Input {
  ElementType type;
  SymbolicShape shape;
};

struct Case {
  std::string op;
  std::vector<Input> inputs;
  std::string flops, bytes;
};

const Dim n = Dim::symbol("n");

// Each is a node with one output, whose inputs are those of the model.
TEST(Placement, EstimatesWhatANodeDoes) {
  const Input scale{f32, {}}, zero{u8, {}};
  const Case cases[] = {
      {"Relu", {{f32, {n, 2}}}, "2*n", "16*n"},
      {"MatMul", {{f32, {n, 3}}, {f32, {3, 5}}}, "30*n", "32*n + 60"},
      {"QLinearMatMul", {{u8, {n, 3}}, scale, zero, {u8, {3, 5}}, scale, zero, scale, zero}, "30*n", "8*n + 30"},
      {"Conv", {{f32, {1, 3, n, 8}}, {f32, {4, 3, 1, 1}}}, "192*n", "224*n + 48"},
      {"QLinearConv",
       {{u8, {1, 3, n, 8}}, scale, zero, {u8, {4, 3, 1, 1}}, scale, zero, scale, zero},
       "192*n",
       "56*n + 27"},
      // Y [n, 1, 2, 5] of 4 gates, each with 3 inputs and 5 of the last step.
      {"LSTM", {{f32, {n, 2, 3}}, {f32, {1, 20, 3}}, {f32, {1, 20, 5}}}, "640*n", "64*n + 640"},
      // Y [1, 2, n, 4]: 7 keys of 4 columns, and 7 values.
      {"Attention", {{f32, {1, 2, n, 4}}, {f32, {1, 2, 7, 4}}, {f32, {1, 2, 7, 4}}}, "224*n", "64*n + 448"},
      {"Attention", {{f32, {1, 2, n, 4}}, {f32, {1, 2, 7, 4}}, {f32, {1, 2, 7, 2}}}, "168*n", "48*n + 336"},
      // What is picked is read and written, with the indices.
      {"Gather", {{f32, {1000, 4}}, {i64, {n}}}, "0", "40*n"},
      {"GatherND", {{f32, {1000, 4}}, {i64, {n, 1}}}, "0", "40*n"},
      {"Shape", {{f32, {n, 4}}}, "0", "16"},
      {"Size", {{f32, {n, 4}}}, "0", "8"},
      {"Flatten", {{f32, {n, 4, 4}}}, "0", "0"},
      {"Transpose", {{f32, {n, 4}}}, "4*n", "32*n"},
  };
  for (const Case& c : cases) {
    ModelBuilder b;
    std::vector<std::string> names;
    for (const Input& input : c.inputs) {
      names.push_back("x" + std::to_string(names.size()));
      b.input(names.back(), input.type, input.shape);
    }
    ir::Node& node = b.node(c.op, names, {"y"});
    if (c.op == "LSTM") node.set_attribute(ir::Attribute("hidden_size", int64_t{5}));
    b.output("y");
    SessionOptions options;
    options.level = OptimizationLevel::none;
    const Session session = b.session(options);
    ASSERT_EQ(session.placement().size(), 1u) << c.op;
    EXPECT_EQ(session.placement()[0].flops, c.flops) << c.op;
    EXPECT_EQ(session.placement()[0].bytes, c.bytes) << c.op;
  }
}

TEST(Placement, CountsEveryFusedOperation) {
  ModelBuilder b;
  b.input("x", f32, SymbolicShape{n, 2});
  b.node("Neg", {"x"}, {"a"});
  b.node("Exp", {"a"}, {"b"});
  b.node("Mul", {"b", "x"}, {"y"});
  b.output("y");
  const Session session = b.session();
  ASSERT_EQ(session.placement().size(), 1u);
  EXPECT_EQ(session.placement()[0].kernel, "FusedElementwise");
  EXPECT_EQ(session.placement()[0].flops, "6*n");
  EXPECT_EQ(session.placement()[0].bytes, "16*n");
}

}  // namespace
}  // namespace tenon

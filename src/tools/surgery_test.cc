#include <gtest/gtest.h>

#include "model_builder.h"
#include "tenon/tools/convert_dtype.h"
#include "tenon/tools/dynamic.h"
#include "tenon/tools/extract.h"
#include "tenon/tools/merge.h"
#include "tenon/tools/prune.h"
#include "tenon/tools/rename.h"
#include "tools/batch_proof.h"
#include "tools/half_tensors.h"

namespace tenon::tools {
namespace {

OnnxModel model_of(const ModelBuilder& builder) {
  const std::string bytes = builder.bytes();
  return OnnxModel::from_bytes(std::as_bytes(std::span(bytes)));
}

// y, z = Split(x); s = y + z
ModelBuilder split() {
  ModelBuilder b;
  b.input("x", ElementType::float32, {{4}});
  ir::Node& node = b.node("Split", {"x"}, {"y", "z"});
  node.set_attribute({"num_outputs", int64_t{2}});
  b.node("Add", {"y", "z"}, {"s"});
  b.output("s");
  return b;
}

TEST(Extract, CutsOneOfTwoOutputs) {
  const ChangedModel part = extract(model_of(split()), {{"x", "y"}, {"s"}});
  const NamedValues outputs =
      part.model.open().run({{"x", Tensor({4}, {1.0f, 2.0f, 3.0f, 4.0f})}, {"y", Tensor({2}, {10.0f, 20.0f})}});
  EXPECT_TRUE(identical(outputs.at("s").tensor(), Tensor({2}, {13.0f, 24.0f})));
}

TEST(Extract, AnUnneededInputIsNoted) {
  const ChangedModel part = extract(model_of(split()), {{"x", "s"}, {"s"}});
  EXPECT_EQ(part.notes, std::vector<std::string>{"no output needs the input 'x'"});
  EXPECT_EQ(part.model.ir().graph->nodes().size(), 0u);
}

TEST(Prune, ModelsStayAsTheyWere) {
  ModelBuilder b = split();
  b.output("y");
  const OnnxModel model = model_of(b);
  const std::string before = model.to_bytes();
  EXPECT_EQ(prune(model, {{"s"}, {}}).model.ir().graph->outputs().size(), 1u);
  EXPECT_EQ(model.to_bytes(), before);
}

TEST(Merge, OneModelTwice) {
  ModelBuilder b;
  b.input("x", ElementType::float32, {{2}});
  b.initializer("two", Tensor({1}, {2.0f}));
  b.node("Mul", {"x", "two"}, {"y"}, "double");
  b.output("y");
  const OnnxModel model = model_of(b);
  const ChangedModel merged = merge(model, model, {.map = {{"y", "x"}}});
  const NamedValues outputs = merged.model.open().run({{"x", Tensor({2}, {1.0f, 3.0f})}});
  EXPECT_TRUE(identical(outputs.at("second/y").tensor(), Tensor({2}, {4.0f, 12.0f})));
}

TEST(Rename, SwapsNames) {
  const ChangedModel renamed = rename(model_of(split()), {.values = {{"y", "z"}, {"z", "y"}}, .nodes = {}, .dims = {}});
  EXPECT_EQ(renamed.model.ir().graph->nodes().front().output(0)->name, "z");
  EXPECT_EQ(renamed.model.ir().graph->nodes().front().output(1)->name, "y");
}

TEST(Dynamic, WhatStandsInTheWayIsInTheError) {
  ModelBuilder b;
  b.input("x", ElementType::float32, {{2, 3}});
  b.initializer("c", Tensor({2, 1}, {1.0f, 2.0f}));
  b.node("Add", {"x", "c"}, {"y"}, "shift");
  b.output("y");
  const DynamicModel result = make_dynamic(model_of(b));
  EXPECT_FALSE(result.model);
  EXPECT_EQ(error_of([&] { result.require(); }),
            "unsupported: the size cannot be freed:\n  Add 'shift' (node 0), 'c': it holds 2 different rows");
}

TEST(BatchProof, RowsOfAnAxis) {
  const Tensor tensor({2, 4}, {0.0f, 1.0f, 2.0f, 3.0f, 4.0f, 5.0f, 6.0f, 7.0f});
  EXPECT_TRUE(identical(rows_of(tensor, 0, 1, 1), Tensor({1, 4}, {4.0f, 5.0f, 6.0f, 7.0f})));
  EXPECT_TRUE(identical(rows_of(tensor, 1, 1, 2), Tensor({2, 2}, {1.0f, 2.0f, 5.0f, 6.0f})));
  EXPECT_TRUE(identical(rows_of(tensor, 1, 1, 1, 2), Tensor({2, 2}, {2.0f, 3.0f, 6.0f, 7.0f})));
}

TEST(HalfTensors, WhatDoesNotFit) {
  const auto why = [](std::initializer_list<float> numbers, ElementType type) {
    return why_not_half(Tensor({static_cast<int64_t>(numbers.size())}, numbers), type);
  };
  EXPECT_EQ(why({1, 65504, 0}, ElementType::float16), "");
  EXPECT_EQ(why({1, 70000}, ElementType::float16), "1 of its 2 numbers are too large for float16");
  EXPECT_EQ(why({1e-9f, 0}, ElementType::float16), "1 of its 2 numbers would be 0 in float16");
  EXPECT_EQ(why({70000, 1e-9f}, ElementType::bfloat16), "");
  EXPECT_EQ(why({-std::numeric_limits<float>::infinity()}, ElementType::float16), "");
}

}  // namespace
}  // namespace tenon::tools

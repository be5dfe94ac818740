#include <gtest/gtest.h>

#include "model_builder.h"

namespace tenon {
namespace {

const Dim batch = Dim::symbol("batch"), width = Dim::symbol("width");

ModelBuilder sum() {
  ModelBuilder b;
  b.input("x", ElementType::float32, SymbolicShape{batch, width});
  b.initializer("w", Tensor({2}, {1.0f, 2.0f}));
  b.node("Add", {"x", "w"}, {"y"});
  b.output("y", ir::Type::tensor(ElementType::float32, SymbolicShape{batch, width}));
  return b;
}

TEST(FixedSizes, NamedSizesAreNumbersEverywhere) {
  SessionOptions options;
  options.sizes = {{"batch", 3}};
  Session session = sum().session(options);
  EXPECT_EQ(session.inputs()[0].shape, (std::vector<std::string>{"3", "width"}));
  EXPECT_EQ(session.outputs()[0].shape[0], "3");
  EXPECT_TRUE(session.run({{"x", Tensor(ElementType::float32, {3, 2})}}).contains("y"));
  EXPECT_NE(error_of([&] { session.run({{"x", Tensor(ElementType::float32, {1, 2})}}); }), "");
}

TEST(FixedSizes, DenotedSizesFixTheirNames) {
  ModelBuilder b = sum();
  b.value("x").type.details = std::make_shared<const ir::Type::Details>(ir::Type::Details{
      .denotation = "", .dim_denotations = {"DATA_BATCH", ""}, .opaque_domain = "", .opaque_name = ""});
  SessionOptions options;
  options.denoted_sizes = {{"DATA_BATCH", 4}};
  Session session = b.session(options);
  EXPECT_EQ(session.inputs()[0].shape, (std::vector<std::string>{"4", "width"}));
  EXPECT_EQ(session.outputs()[0].shape[0], "4");
}

TEST(FixedSizes, WhatTheModelDoesNotHaveIsNoted) {
  SessionOptions options;
  options.sizes = {{"length", 3}};
  options.denoted_sizes = {{"DATA_CHANNEL", 3}};
  EXPECT_EQ(sum().session(options).notes(),
            (std::vector<std::string>{"the model has no dimension that is called 'length'",
                                      "no input has a dimension that is denoted 'DATA_CHANNEL'"}));
  options.sizes = {{"batch", -1}};
  EXPECT_EQ(error_of([&] { sum().session(options); }), "invalid-argument: the size given for 'batch' is negative: -1");
}

TEST(SizeNames, MustAgreeUnlessTheyAreNotTrusted) {
  ModelBuilder b;
  b.input("x", ElementType::float32, SymbolicShape{batch, 2});
  b.input("z", ElementType::float32, SymbolicShape{batch, 2});
  b.node("Concat", {"x", "z"}, {"y"});
  b.graph().nodes().front().set_attribute(ir::Attribute("axis", int64_t{0}));
  b.output("y", ir::Type::tensor(ElementType::float32, SymbolicShape{batch + batch, 2}));
  auto rows = [&](const SessionOptions& options) {
    NamedValues inputs{{"x", Tensor(ElementType::float32, {3, 2})}, {"z", Tensor(ElementType::float32, {1, 2})}};
    return b.session(options).run(inputs)["y"].tensor().shape()[0];
  };
  SessionOptions options;
  EXPECT_NE(error_of([&] { rows(options); }).find("size 'batch' is 3"), std::string::npos);
  options.trust_size_names = false;
  EXPECT_EQ(rows(options), 4);
}

TEST(GivenInitializers, TakeThePlaceOfTheModels) {
  SessionOptions options;
  options.initializers.emplace("w", Tensor({2}, {10.0f, 20.0f}));
  NamedValues outputs = sum().session(options).run({{"x", Tensor({1, 2}, {1.0f, 1.0f})}});
  EXPECT_EQ(outputs["y"].tensor().data<float>()[1], 21.0f);
}

TEST(GivenInitializers, MustFit) {
  auto error = [](const std::string& name, Tensor tensor) {
    SessionOptions options;
    options.initializers.emplace(name, std::move(tensor));
    return error_of([&] { sum().session(options); });
  };
  EXPECT_EQ(error("w", Tensor({3}, {1.0f, 2.0f, 3.0f})),
            "shape-mismatch, tensor 'w': the initializer has shape [2], the tensor given for it [3]");
  EXPECT_EQ(error("w", Tensor({2}, {1.0, 2.0})),
            "type-mismatch, tensor 'w': the initializer is of float, the tensor given for it of double");
  EXPECT_EQ(error("v", Tensor({2}, {1.0f, 2.0f})),
            "unknown-name, tensor 'v': a tensor is given for this initializer, which the model does not have\n"
            "  hint: did you mean 'w'?");
}

}  // namespace
}  // namespace tenon

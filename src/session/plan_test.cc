#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <thread>

#include "model_builder.h"

namespace tenon {
namespace {

const Dim n = Dim::symbol("n");

std::vector<float> floats(const Value& value) {
  auto data = value.tensor().data<float>();
  return {data.begin(), data.end()};
}

Tensor ints(std::vector<int64_t> values) {
  return Tensor(Shape{static_cast<int64_t>(values.size())}, std::span<const int64_t>(values));
}

SessionOptions as_it_is() {
  SessionOptions options;
  options.level = OptimizationLevel::none;
  return options;
}

// The operators that a run executes, in order.
std::vector<std::string> executed(const Session& session, const NamedValues& inputs) {
  std::vector<StepProfile> profile;
  RunOptions options;
  options.profile = &profile;
  session.run(inputs, options);
  std::vector<std::string> result;
  for (const StepProfile& step : profile) result.push_back(step.op_type);
  return result;
}

using Names = std::vector<std::string>;

// x [n, 6] with its last axis split in two, as exporters write it: the sizes are read from x.
TEST(Plan, ShapeArithmeticNeverRuns) {
  ModelBuilder b;
  b.input("x", ElementType::float32, SymbolicShape{n, 6});
  b.initializer("zero", ints({0})).initializer("two", ints({2})).initializer("rest", ints({-1}));
  b.node("Neg", {"x"}, {"y"});
  b.node("Shape", {"y"}, {"shape"});
  b.node("Gather", {"shape", "zero"}, {"rows"});
  b.node("Concat", {"rows", "two", "rest"}, {"target"}).set_attribute(ir::Attribute("axis", int64_t{0}));
  b.node("Reshape", {"y", "target"}, {"z"});
  // The scale of an attention as the square root of a size.
  b.node("Cast", {"rows"}, {"count"}).set_attribute(ir::Attribute("to", int64_t{1}));
  b.node("Sqrt", {"count"}, {"root"});
  b.node("Mul", {"z", "root"}, {"scaled"});
  b.output("scaled");
  Session session = b.session(as_it_is());
  for (int64_t rows : {4, 9, 4}) {
    std::vector<float> ones(static_cast<size_t>(rows) * 6, 1.0f);
    Tensor x(Shape{rows, 6}, std::span<const float>(ones));
    EXPECT_EQ(executed(session, {{"x", x}}), (Names{"Neg", "Mul"}));
    NamedValues outputs = session.run({{"x", x}});
    EXPECT_EQ(outputs["scaled"].tensor().shape(), (Shape{rows, 2, 3}));
    EXPECT_EQ(floats(outputs["scaled"])[0], rows == 4 ? -2.0f : -3.0f);
  }
}

TEST(Plan, ContentThatDecidesShapesIsPartOfThePlan) {
  ModelBuilder b;
  b.input("x", ElementType::float32, SymbolicShape{n}).input("rows", ElementType::int64, SymbolicShape{1});
  b.initializer("rest", ints({-1}));
  b.node("Concat", {"rows", "rest"}, {"target"}).set_attribute(ir::Attribute("axis", int64_t{0}));
  b.node("Relu", {"x"}, {"r"});
  b.node("Reshape", {"r", "target"}, {"y"});
  b.node("Transpose", {"y"}, {"z"});
  b.output("z");
  Session session = b.session(as_it_is());
  Tensor x({6}, {1.0f, 2.0f, 3.0f, 4.0f, 5.0f, 6.0f});
  for (int64_t rows : {2, 3, 2}) {
    NamedValues inputs = {{"x", x}, {"rows", ints({rows})}};
    EXPECT_EQ(executed(session, inputs), (Names{"Relu", "Transpose"}));
    EXPECT_EQ(session.run(inputs)["z"].tensor().shape(), (Shape{6 / rows, rows}));
  }
}

TEST(Plan, ViewsAndPartsAreNotCopied) {
  ModelBuilder b;
  b.input("x", ElementType::float32, SymbolicShape{4, n});
  b.node("Neg", {"x"}, {"a"});
  b.node("Split", {"a"}, {"top", "bottom"}).set_attribute(ir::Attribute("num_outputs", int64_t{2}));
  b.node("Abs", {"top"}, {"p"});
  b.node("Exp", {"bottom"}, {"q"});
  b.node("Concat", {"p", "q"}, {"joined"}).set_attribute(ir::Attribute("axis", int64_t{0}));
  b.node("Sqrt", {"joined"}, {"y"});
  b.output("y");
  Session session = b.session(as_it_is());
  NamedValues inputs = {{"x", Tensor({4, 1}, {4.0f, 9.0f, 0.0f, 0.0f})}};
  EXPECT_EQ(executed(session, inputs), (Names{"Neg", "Abs", "Exp", "Sqrt"}));
  EXPECT_EQ(floats(session.run(inputs)["y"]), (std::vector<float>{2, 3, 1, 1}));
}

TEST(Plan, AConcatOfTheSameTensorTwiceIsCopied) {
  ModelBuilder b;
  b.input("x", ElementType::float32, SymbolicShape{n});
  b.node("Neg", {"x"}, {"a"});
  b.node("Concat", {"a", "x", "a"}, {"y"}).set_attribute(ir::Attribute("axis", int64_t{0}));
  b.node("Neg", {"y"}, {"z"});
  b.output("z");
  EXPECT_EQ(floats(b.session(as_it_is()).run({{"x", Tensor({2}, {1.0f, 2.0f})}})["z"]),
            (std::vector<float>{1, 2, -1, -2, 1, 2}));
}

TEST(Plan, WritesOverOnlyWhatNobodyReadsLater) {
  ModelBuilder b;
  b.input("x", ElementType::float32, SymbolicShape{n, 2});
  b.initializer("first", ints({0})).initializer("one", ints({1}));
  b.node("Neg", {"x"}, {"a"});
  b.node("Exp", {"a"}, {"b"});  // a is read again below
  b.node("Add", {"a", "b"}, {"c"});
  b.node("Slice", {"c", "first", "one"}, {"row"});  // a view of c
  b.node("Mul", {"c", "row"}, {"d"});               // may not write over c while it reads the view
  b.node("Sub", {"d", "a"}, {"y"});
  b.output("y");
  Session session = b.session(as_it_is());
  const std::vector<float> x = {0.0f, 1.0f, 2.0f, 3.0f};
  std::vector<float> expected(4), c(4);
  for (size_t i = 0; i < 4; ++i) c[i] = -x[i] + std::exp(-x[i]);
  for (size_t i = 0; i < 4; ++i) expected[i] = c[i] * c[i % 2] + x[i];
  std::vector<float> y = floats(session.run({{"x", Tensor(Shape{2, 2}, std::span<const float>(x))}})["y"]);
  for (size_t i = 0; i < 4; ++i) EXPECT_NEAR(y[i], expected[i], 1e-6) << i;
}

// What a sequence keeps must not be overwritten by later steps.
TEST(Plan, WhatIsKeptStays) {
  ModelBuilder b;
  b.input("x", ElementType::float32, SymbolicShape{n});
  b.initializer("at", Tensor(Shape{}, {int64_t{0}}));
  b.node("Neg", {"x"}, {"a"});
  b.node("SequenceConstruct", {"a"}, {"list"});
  b.node("Exp", {"a"}, {"b"});
  b.node("Sqrt", {"b"}, {"c"});
  b.node("SequenceAt", {"list", "at"}, {"kept"});
  b.node("Add", {"c", "kept"}, {"y"});
  b.output("y");
  std::vector<float> y = floats(b.session(as_it_is()).run({{"x", Tensor({1}, {2.0f})}})["y"]);
  EXPECT_NEAR(y[0], std::exp(-1.0f) - 2.0f, 1e-6);
}

TEST(Plan, OutputsOutliveTheNextRun) {
  ModelBuilder b;
  b.input("x", ElementType::float32, SymbolicShape{n});
  b.node("Neg", {"x"}, {"y"});
  b.node("Identity", {"y"}, {"same"});
  b.output("y").output("same");
  Session session = b.session(as_it_is());
  NamedValues first = session.run({{"x", Tensor({2}, {1.0f, 2.0f})}});
  NamedValues second = session.run({{"x", Tensor({2}, {3.0f, 4.0f})}});
  EXPECT_EQ(floats(first["y"]), (std::vector<float>{-1, -2}));
  EXPECT_EQ(floats(first["same"]), (std::vector<float>{-1, -2}));
  EXPECT_EQ(floats(second["y"]), (std::vector<float>{-3, -4}));
  EXPECT_NE(first["y"].tensor().raw(), first["same"].tensor().raw());
}

TEST(Plan, DataThatDecidesSizesIsAllocatedAsItAppears) {
  ModelBuilder b;
  b.input("x", ElementType::float32, SymbolicShape{n});
  b.node("NonZero", {"x"}, {"where"});
  b.node("Transpose", {"where"}, {"rows"});
  b.node("GatherND", {"x", "rows"}, {"y"});
  b.output("y");
  Session session = b.session(as_it_is());
  EXPECT_EQ(floats(session.run({{"x", Tensor({3}, {1.0f, 0.0f, 2.0f})}})["y"]), (std::vector<float>{1, 2}));
  EXPECT_EQ(floats(session.run({{"x", Tensor({3}, {0.0f, 0.0f, 3.0f})}})["y"]), (std::vector<float>{3}));
}

TEST(Plan, MemoryStaysTheSameOverManyShapes) {
  ModelBuilder b;
  b.input("x", ElementType::float32, SymbolicShape{n, 100});
  b.node("Neg", {"x"}, {"a"});
  b.node("Transpose", {"a"}, {"t"});
  b.node("MatMul", {"a", "t"}, {"y"});
  b.output("y");
  Session session = b.session();
  auto run = [&](int64_t rows) { session.run({{"x", Tensor(ElementType::float32, Shape{rows, 100})}}); };
  for (int64_t rows = 1; rows <= 64; ++rows) run(rows);
  const SessionMemory after_all = session.memory();
  for (int64_t i = 0; i < 1000; ++i) run(1 + i * 37 % 64);
  EXPECT_LE(session.memory().in_use + session.memory().cached, after_all.in_use + after_all.cached);
  session.trim();
  EXPECT_EQ(session.memory().in_use, 0);
  EXPECT_EQ(session.memory().cached, 0);
  run(64);
  EXPECT_GT(session.memory().in_use, 0);
}

TEST(Plan, ProfilesSayWhatRan) {
  ModelBuilder b;
  b.input("x", ElementType::float32, SymbolicShape{n, 3})
      .initializer("w", Tensor({3, 2}, {1.0f, 2.0f, 3.0f, 4.0f, 5.0f, 6.0f}));
  b.node("MatMul", {"x", "w"}, {"y"}, "product");
  b.output("y");
  std::vector<StepProfile> profile;
  RunOptions options;
  options.profile = &profile;
  Session session = b.session(as_it_is());
  session.run({{"x", Tensor(ElementType::float32, Shape{5, 3})}}, options);
  ASSERT_EQ(profile.size(), 1u);
  EXPECT_EQ(profile[0].node, "MatMul 'product' (node 0)");
  EXPECT_EQ(profile[0].inputs, (Names{"float [5, 3]", "float [3, 2]"}));
  EXPECT_EQ(profile[0].outputs, (Names{"float [5, 2]"}));
  EXPECT_EQ(profile[0].provider, "cpu");
  EXPECT_EQ(profile[0].kernel, session.placement()[0].kernel);
  EXPECT_EQ(profile[0].flops, 2.0 * 5 * 3 * 2);
  EXPECT_EQ(profile[0].bytes, 4.0 * (15 + 6 + 10));
  EXPECT_EQ(session.placement()[0].flops, "12*n");
}

// Steps on an input of fixed size, so that those which depend on the other one are few.
void add_fixed_steps(ModelBuilder& b) {
  b.input("f", ElementType::float32, SymbolicShape{3});
  std::string last = "f";
  for (int i = 0; i < 16; ++i) {
    const std::string next = "f." + std::to_string(i);
    b.node(i % 2 ? "Neg" : "Exp", {last}, {next});
    last = next;
  }
  b.output(last);
}

// Runs with one size after the other give what a session gives that sees no other.
void expect_same_as_alone(const ModelBuilder& b, const std::vector<int64_t>& sizes) {
  const Session session = b.session(as_it_is());
  for (int64_t size : sizes) {
    Tensor x(ElementType::float32, Shape{size, 4});
    float value = 0;
    for (float& element : x.mutable_data<float>()) element = value += 0.5f;
    const NamedValues inputs = {{"x", x}, {"f", Tensor({3}, {0.1f, 0.2f, 0.3f})}};
    const NamedValues outputs = session.run(inputs), alone = b.session(as_it_is()).run(inputs);
    for (const auto& [name, expected] : alone)
      ASSERT_TRUE(identical(outputs.at(name).tensor(), expected.tensor())) << name << " of size " << size;
  }
}

// Growing, as a cache does, by leaps, and back.
std::vector<int64_t> growing_sizes() {
  std::vector<int64_t> sizes;
  for (int64_t size = 1; size <= 40; ++size) sizes.push_back(size);
  for (int64_t size : {400, 401, 402, 5, 6, 7, 8, 5000, 5001, 5002, 1, 2, 3, 0, 1, 2, 3}) sizes.push_back(size);
  return sizes;
}

TEST(Plan, GrowingShapesUpdateThePlan) {
  ModelBuilder b;
  add_fixed_steps(b);
  b.input("x", ElementType::float32, SymbolicShape{n, 4});
  b.initializer("zero", Tensor::scalar(int64_t{0})).initializer("one", Tensor::scalar(int64_t{1}));
  b.initializer("flat", ints({-1})).initializer("first", ints({0})).initializer("end", ints({-1}));
  b.initializer("four", ints({4}));
  b.node("Neg", {"x"}, {"negative"});
  b.node("Abs", {"negative"}, {"in place"});
  b.node("Reshape", {"in place", "flat"}, {"view"});
  b.node("Slice", {"view", "first", "end"}, {"part"});
  b.node("Mul", {"part", "part"}, {"square"});
  b.node("Size", {"x"}, {"count"});
  b.node("Range", {"zero", "count", "one"}, {"numbers"});
  b.node("Cast", {"numbers"}, {"known"}).set_attribute(ir::Attribute("to", int64_t{1}));
  b.node("Add", {"view", "known"}, {"sum"});
  b.output("square").output("sum").output("known").output("view");
  expect_same_as_alone(b, growing_sizes());
}

TEST(Plan, GrowingPartsAndUnknownSizes) {
  ModelBuilder b;
  add_fixed_steps(b);
  b.input("x", ElementType::float32, SymbolicShape{n, 4});
  b.node("Neg", {"x"}, {"a"});
  b.node("Exp", {"f"}, {"other"});
  b.node("ReduceSum", {"a"}, {"total"}).set_attribute(ir::Attribute("keepdims", int64_t{0}));
  b.node("Concat", {"a", "x"}, {"joined"}).set_attribute(ir::Attribute("axis", int64_t{0}));
  b.node("NonZero", {"a"}, {"places"});
  b.node("Add", {"other", "total"}, {"shifted"});
  b.output("joined").output("places").output("shifted");
  expect_same_as_alone(b, growing_sizes());
}

// A row of the table is added to each row of x, which has as many at most.
ModelBuilder rows_of_a_table() {
  ModelBuilder b;
  add_fixed_steps(b);
  b.input("x", ElementType::float32, SymbolicShape{n, 4});
  Tensor table(ElementType::float32, Shape{20, 4});
  std::ranges::fill(table.mutable_data<float>(), 0.0f);
  b.initializer("table", table).initializer("first", ints({0}));
  b.initializer("axis", ints({0}));
  b.node("Shape", {"x"}, {"rows"}).set_attribute(ir::Attribute("end", int64_t{1}));
  b.node("Slice", {"table", "first", "rows", "axis"}, {"part"});
  b.node("Add", {"x", "part"}, {"y"}, "sum");
  b.output("y");
  return b;
}

TEST(Plan, GrowthThatCannotGoOnIsAnErrorOnlyWhenItComes) {
  const ModelBuilder b = rows_of_a_table();
  expect_same_as_alone(b, {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20});
  expect_same_as_alone(b, {20, 18, 16, 14, 12, 10, 8, 6, 4, 2, 0, 1, 2, 3, 4, 5});
  const Session session = b.session(as_it_is());
  auto run = [&](int64_t rows) {
    return session.run({{"x", Tensor(ElementType::float32, Shape{rows, 4})}, {"f", Tensor({3}, {0.1f, 0.2f, 0.3f})}});
  };
  for (int64_t rows = 1; rows <= 20; ++rows) EXPECT_EQ(run(rows).at("y").tensor().dim(0), rows);
  EXPECT_THROW(run(21), Error);
  for (int64_t rows = 1; rows <= 20; ++rows) EXPECT_EQ(run(rows).at("y").tensor().dim(0), rows);
}

TEST(Plan, ContentsThatDecideShapesGrowToo) {
  ModelBuilder b;
  add_fixed_steps(b);
  b.input("count", ElementType::int64, SymbolicShape{1});
  b.input("x", ElementType::float32, SymbolicShape{n, 4});
  b.initializer("one", Tensor({1}, {1.0f}));
  b.node("Expand", {"one", "count"}, {"ones"});
  b.node("ReduceSum", {"x"}, {"total"}).set_attribute(ir::Attribute("keepdims", int64_t{0}));
  b.node("Add", {"ones", "total"}, {"y"});
  b.output("y");
  const Session session = b.session(as_it_is());
  for (int64_t rows = 1; rows <= 30; ++rows) {
    Tensor x(ElementType::float32, Shape{rows, 4});
    for (float& element : x.mutable_data<float>()) element = 0.25f;
    const int64_t count = rows % 7 == 0 ? 3 : rows;
    const NamedValues outputs =
        session.run({{"x", x}, {"count", ints({count})}, {"f", Tensor({3}, {0.1f, 0.2f, 0.3f})}});
    EXPECT_EQ(floats(outputs.at("y")), std::vector<float>(static_cast<size_t>(count), 1 + static_cast<float>(rows)));
  }
}

TEST(Plan, ManyThreadsGrow) {
  const ModelBuilder b = rows_of_a_table();
  const Session session = b.session(as_it_is());
  std::atomic<int> wrong = 0;
  std::vector<std::jthread> threads;
  for (int64_t thread = 0; thread < 4; ++thread) {
    threads.emplace_back([&, thread] {
      for (int64_t i = 0; i < 200; ++i) {
        const int64_t rows = (i + thread * 5) % 20 + 1;
        Tensor x(ElementType::float32, Shape{rows, 4});
        for (float& element : x.mutable_data<float>()) element = static_cast<float>(rows);
        const Tensor y = session.run({{"x", x}, {"f", Tensor({3}, {0.1f, 0.2f, 0.3f})}}).at("y").tensor();
        if (!identical(x, y)) ++wrong;
      }
    });
  }
  threads.clear();
  EXPECT_EQ(wrong, 0);
}

}  // namespace
}  // namespace tenon

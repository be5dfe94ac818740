#include <fmt/core.h>
#include <gtest/gtest.h>

#include "model_builder.h"
#include "session/precision_choice.h"

namespace tenon {
namespace {

using Names = std::vector<std::string>;

// Writes down what it sees: "> node: inputs" before a step and "< node: outputs" after it, with the first numbers.
class Scribe : public RunWatcher {
 public:
  Names lines;
  std::string stop_at;

  void before(const WatchedStep& step) override { lines.push_back("> " + step.node + text(step.inputs)); }
  void after(const WatchedStep& step) override {
    lines.push_back("< " + step.node + text(step.outputs));
    if (step.node == stop_at) throw Error(ErrorCode::cancelled, "seen enough");
  }

 private:
  static std::string text(const std::vector<WatchedStep::Operand>& operands) {
    std::string text;
    for (const auto& [name, value] : operands)
      text += value ? fmt::format(" {}={}", name, value->tensor().data<float>()[0]) : " -";
    return text;
  }
};

// y = -|x|, z = y + x
ModelBuilder two_outputs() {
  ModelBuilder b;
  b.input("x", ElementType::float32, SymbolicShape{Dim::symbol("n")});
  b.node("Abs", {"x"}, {"a"}, "abs");
  b.node("Neg", {"a"}, {"y"}, "neg");
  b.node("Add", {"y", "x"}, {"z"}, "add");
  b.output("y").output("z");
  return b;
}

SessionOptions plain() {
  SessionOptions options;
  options.level = OptimizationLevel::none;
  return options;
}

TEST(RunWatcher, SeesEveryStepWithItsValues) {
  const Session session = two_outputs().session(plain());
  Scribe scribe;
  RunOptions options;
  options.watcher = &scribe;
  const NamedValues results = session.run({{"x", Tensor({1}, {-2.0f})}}, options);
  EXPECT_EQ(scribe.lines,
            (Names{"> Abs 'abs' (node 0) x=-2", "< Abs 'abs' (node 0) a=2", "> Neg 'neg' (node 1) a=2",
                   "< Neg 'neg' (node 1) y=-2", "> Add 'add' (node 2) y=-2 x=-2", "< Add 'add' (node 2) z=-4"}));
  EXPECT_EQ(results.at("z").tensor().data<float>()[0], -4);
}

TEST(RunWatcher, MayEndTheRunWhichMayBeMeasuredToo) {
  const Session session = two_outputs().session(plain());
  Scribe scribe;
  scribe.stop_at = "Neg 'neg' (node 1)";
  std::vector<StepProfile> profile;
  RunOptions options;
  options.watcher = &scribe;
  options.profile = &profile;
  EXPECT_THROW(session.run({{"x", Tensor({1}, {-2.0f})}}, options), Error);
  EXPECT_EQ(scribe.lines.size(), 4u);
  EXPECT_EQ(profile.size(), 1u);
  EXPECT_NO_THROW(session.run({{"x", Tensor({1}, {-2.0f})}})) << "the session stays usable";
}

TEST(RunWatcher, SeesBodiesBetweenTheTwoCallsOfTheirNode) {
  ModelBuilder b;
  b.input("x", ElementType::float32, SymbolicShape{2}).input("go", ElementType::boolean, SymbolicShape{});
  ir::Node& branch = b.node("If", {"go"}, {"y"}, "if");
  for (const char* name : {"then_branch", "else_branch"}) {
    auto body = std::make_unique<ir::Graph>();
    ir::Node& node = body->add_node(name[0] == 't' ? "Abs" : "Neg");
    node.add_input(&b.value("x"));
    node.add_output(&body->add_value("inner"));
    body->add_output(*node.output(0));
    branch.set_attribute(ir::Attribute(name, std::move(body)));
  }
  ir::adopt_subgraphs(branch);
  b.output("y");
  class Order : public RunWatcher {
   public:
    Names lines;
    void before(const WatchedStep& step) override { lines.push_back("> " + std::string(step.op_type)); }
    void after(const WatchedStep& step) override { lines.push_back("< " + std::string(step.op_type)); }
  } order;
  RunOptions options;
  options.watcher = &order;
  Tensor go(ElementType::boolean, Shape{});
  go.mutable_data<bool>()[0] = true;
  b.session(plain()).run({{"x", Tensor({2}, {1.0f, 2.0f})}, {"go", go}}, options);
  EXPECT_EQ(order.lines, (Names{"> If", "> Abs", "< Abs", "< If"}));
}

TEST(RunWatcher, SeesBranchesOneAfterTheOther) {
  ModelBuilder b;
  b.input("x", ElementType::float32, SymbolicShape{64, 64});
  for (int i = 0; i < 8; ++i) {
    b.node("MatMul", {"x", "x"}, {"y" + std::to_string(i)}, "product " + std::to_string(i));
    b.output("y" + std::to_string(i));
  }
  SessionOptions options = plain();
  options.threads = 4;
  options.parallel_branches = true;
  Scribe scribe;
  RunOptions run;
  run.watcher = &scribe;
  b.session(options).run({{"x", Tensor(ElementType::float32, Shape{64, 64})}}, run);
  ASSERT_EQ(scribe.lines.size(), 16u);
  for (size_t i = 0; i < 16; ++i) EXPECT_EQ(scribe.lines[i][0], i % 2 == 0 ? '>' : '<');
}

TEST(MostRewrites, MakesTheFirstOfThem) {
  ModelBuilder b;
  b.input("x", ElementType::float32, SymbolicShape{Dim::symbol("n")});
  b.node("Identity", {"x"}, {"a"}).name = "first";
  b.node("Identity", {"a"}, {"b"}).name = "second";
  b.node("Relu", {"b"}, {"c"}).name = "relu";
  b.node("Identity", {"c"}, {"y"}).name = "third";
  b.output("y");
  const std::vector<Rewrite> all = [&] { return b.session().rewrites(); }();
  ASSERT_GE(all.size(), 3u);
  for (size_t most = 0; most <= all.size(); ++most) {
    SessionOptions options;
    options.most_rewrites = static_cast<int64_t>(most);
    const Session session = b.session(options);
    ASSERT_EQ(session.rewrites().size(), most);
    for (size_t i = 0; i < most; ++i) {
      EXPECT_EQ(session.rewrites()[i].pass, all[i].pass);
      EXPECT_EQ(session.rewrites()[i].before, all[i].before);
    }
    EXPECT_EQ(session.run({{"x", Tensor({2}, {-1.0f, 3.0f})}}).at("y").tensor().data<float>()[1], 3);
  }
}

TEST(PrecisionChoice, IsFullForNodesThatAreNamed) {
  ModelBuilder b = two_outputs();
  ir::record_origins(b.model());
  const ir::Node& node = b.graph().nodes().front();
  EXPECT_EQ((PrecisionChoice{Precision::fast, {}}.of(node)), Precision::fast);
  EXPECT_EQ((PrecisionChoice{Precision::fast, {"abs"}}.of(node)), Precision::full);
  EXPECT_EQ((PrecisionChoice{Precision::fast, {node.describe()}}.of(node)), Precision::full);
  EXPECT_EQ((PrecisionChoice{Precision::fast, {"neg"}}.of(node)), Precision::fast);
  EXPECT_EQ((PrecisionChoice{Precision::full, {}}.of(node)), Precision::full);
}

}  // namespace
}  // namespace tenon

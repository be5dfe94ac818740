#include "model_builder.h"
#include "op_test.h"

namespace tenon {
namespace {

// A subgraph whose nodes are written one after the other.
class GraphBuilder {
 public:
  GraphBuilder& input(const std::string& name, ElementType type) {
    ir::Value& value = graph_->add_value(name);
    value.type = ir::Type::tensor(type);
    graph_->add_input(value);
    values_[name] = &value;
    return *this;
  }
  GraphBuilder& constant(const std::string& name, Tensor tensor) {
    ir::Value& value = graph_->add_value(name);
    auto content = std::make_shared<ir::Constant>();
    content->tensor = std::move(tensor);
    content->name = name;
    graph_->set_initializer(value, ir::ConstantPtr(std::move(content)));
    values_[name] = &value;
    return *this;
  }
  GraphBuilder& node(const std::string& op, std::vector<std::string> inputs, const std::string& output,
                     int64_t axis = INT64_MIN) {
    ir::Node& node = graph_->add_node(op);
    for (const std::string& name : inputs) node.add_input(values_.at(name));
    ir::Value& value = graph_->add_value(output);
    node.add_output(&value);
    if (axis != INT64_MIN) node.set_attribute(ir::Attribute("axis", axis));
    values_[output] = &value;
    return *this;
  }
  std::unique_ptr<ir::Graph> outputs(std::vector<std::string> names) {
    for (const std::string& name : names) graph_->add_output(*values_.at(name), values_.at(name)->type);
    graph_->name = "body";
    return std::move(graph_);
  }

 private:
  std::unique_ptr<ir::Graph> graph_ = std::make_unique<ir::Graph>();
  std::map<std::string, ir::Value*> values_;
};

std::unique_ptr<ir::Graph> constant_branch(Tensor tensor) {
  static int count = 0;
  std::string suffix = std::to_string(count++);
  return GraphBuilder()
      .constant("c" + suffix, std::move(tensor))
      .node("Identity", {"c" + suffix}, "r" + suffix)
      .outputs({"r" + suffix});
}

TEST(If, Branches) {
  for (bool condition : {true, false}) {
    Tensor one(Shape{1}, {1.0f}), two(Shape{2}, {2.0f, 3.0f});
    OpTest("If")
        .attribute("then_branch", constant_branch(one))
        .attribute("else_branch", constant_branch(two))
        .input<bool>({}, {condition})
        .expect(condition ? one : two)
        .run();
  }
}

// Carries v, which doubles its length in each round, and collects the number of the round.
std::unique_ptr<ir::Graph> growing_body() {
  return GraphBuilder()
      .input("i", ElementType::int64)
      .input("cond", ElementType::boolean)
      .input("v", ElementType::float32)
      .node("Identity", {"cond"}, "cond_out")
      .node("Concat", {"v", "v"}, "v_out", 0)
      .node("Identity", {"i"}, "scan")
      .outputs({"cond_out", "v_out", "scan"});
}

TEST(Loop, CarriedValuesMayGrow) {
  OpTest("Loop")
      .attribute("body", growing_body())
      .input<int64_t>({}, {2})
      .constant<bool>({}, {true})
      .input<float>({1}, {5})
      .expect<float>({4}, {5, 5, 5, 5})
      .expect<int64_t>({2}, {0, 1})
      .run();
  OpTest("Loop", 11)
      .attribute("body", growing_body())
      .input<int64_t>({1}, {1})
      .no_input()
      .input<float>({1}, {5})
      .expect<float>({2}, {5, 5})
      .expect<int64_t>({1}, {0})
      .run();
  OpTest("Loop")
      .attribute("body", growing_body())
      .no_input()
      .input<bool>({}, {false})
      .input<float>({1}, {5})
      .expect<float>({1}, {5})
      .expect<int64_t>({0}, {})
      .run();
  OpTest("Loop")
      .attribute("body", growing_body())
      .constant<int64_t>({}, {-3})
      .no_input()
      .input<float>({1}, {5})
      .expect<float>({1}, {5})
      .expect<int64_t>({0}, {})
      .run();
}

// Two states whose results are handed on in several ways, and collected.
std::unique_ptr<ir::Graph> body_of_two(const std::vector<std::string>& results) {
  return GraphBuilder()
      .input("i", ElementType::int64)
      .input("cond", ElementType::boolean)
      .input("a", ElementType::float32)
      .input("b", ElementType::float32)
      .node("Identity", {"cond"}, "cond_out")
      .node("Add", {"a", "b"}, "sum")
      .node("Sub", {"a", "b"}, "difference")
      .node("Identity", {"a"}, "same")
      .outputs({"cond_out", results[0], results[1], results[2]});
}

TEST(Loop, StatesChangePlaces) {
  struct Case {
    std::vector<std::string> results;
    std::vector<float> a, b, collected;
  };
  // Of a = [1, 2] and b = [10, 20], in three rounds.
  const Case cases[] = {
      {{"b", "sum", "a"}, {21, 42}, {32, 64}, {1, 2, 10, 20, 11, 22}},
      {{"b", "a", "sum"}, {10, 20}, {1, 2}, {11, 22, 11, 22, 11, 22}},
      {{"sum", "sum", "sum"}, {44, 88}, {44, 88}, {11, 22, 22, 44, 44, 88}},
      {{"sum", "b", "same"}, {31, 62}, {10, 20}, {1, 2, 11, 22, 21, 42}},
      {{"sum", "difference", "b"}, {22, 44}, {-18, -36}, {10, 20, -9, -18, 20, 40}},
      {{"a", "difference", "difference"}, {1, 2}, {-9, -18}, {-9, -18, 10, 20, -9, -18}},
  };
  for (const Case& c : cases) {
    OpTest("Loop")
        .attribute("body", body_of_two(c.results))
        .input<int64_t>({}, {3})
        .constant<bool>({}, {true})
        .input<float>({2}, {1, 2})
        .input<float>({2}, {10, 20})
        .expect(Tensor(Shape{2}, std::span<const float>(c.a)))
        .expect(Tensor(Shape{2}, std::span<const float>(c.b)))
        .expect(Tensor(Shape{3, 2}, std::span<const float>(c.collected)))
        .run();
  }
}

TEST(Scan, CollectsValuesWhoseShapeOnlyARunKnows) {
  auto body = GraphBuilder()
                  .input("x", ElementType::float32)
                  .node("Unique", {"x"}, "sorted")
                  .node("Neg", {"sorted"}, "y")
                  .outputs({"y"});
  OpTest("Scan")
      .attribute("body", std::move(body))
      .attribute("num_scan_inputs", int64_t{1})
      .input<float>({3, 2}, {2, 1, 4, 3, 6, 5})
      .expect<float>({3, 2}, {-1, -2, -3, -4, -5, -6})
      .run();
}

TEST(Loop, CollectedValuesMayNot) {
  auto body = GraphBuilder()
                  .input("i", ElementType::int64)
                  .input("cond", ElementType::boolean)
                  .input("v", ElementType::float32)
                  .node("Identity", {"cond"}, "cond_out")
                  .node("Concat", {"v", "v"}, "v_out", 0)
                  .node("Identity", {"v"}, "scan")
                  .outputs({"cond_out", "v_out", "scan"});
  EXPECT_EQ(OpTest("Loop")
                .attribute("body", std::move(body))
                .input<int64_t>({}, {2})
                .no_input()
                .input<float>({1}, {5})
                .expect<float>({4}, {5, 5, 5, 5})
                .expect<float>({1, 1}, {0})
                .error(),
            "shape-mismatch in Loop 'tested' (node 0): output 1 collects float [1] in iteration 0 and float [2] in "
            "iteration 1; they must be equal");
}

// One state, joined with the item of each round; collects the items.
std::unique_ptr<ir::Graph> scan_body() {
  return GraphBuilder()
      .input("s", ElementType::float32)
      .input("x", ElementType::float32)
      .node("Identity", {"x"}, "s_out")
      .node("Identity", {"x"}, "y")
      .outputs({"s_out", "y"});
}

TEST(Scan, AxesAndDirections) {
  OpTest("Scan")
      .attribute("body", scan_body())
      .attribute("num_scan_inputs", 1)
      .input<float>({2}, {0, 0})
      .input<float>({2, 2}, {1, 2, 3, 4})
      .expect<float>({2}, {3, 4})
      .expect<float>({2, 2}, {1, 2, 3, 4})
      .run();
  OpTest("Scan", 9)
      .attribute("body", scan_body())
      .attribute("num_scan_inputs", 1)
      .attribute("scan_input_axes", std::vector<int64_t>{1})
      .attribute("scan_input_directions", std::vector<int64_t>{1})
      .input<float>({2}, {0, 0})
      .input<float>({2, 2}, {1, 2, 3, 4})
      .expect<float>({2}, {1, 3})
      .expect<float>({2, 2}, {2, 4, 1, 3})
      .run();
  OpTest("Scan")
      .attribute("body", scan_body())
      .attribute("num_scan_inputs", 1)
      .attribute("scan_output_axes", std::vector<int64_t>{-1})
      .attribute("scan_output_directions", std::vector<int64_t>{1})
      .input<float>({2}, {0, 0})
      .input<float>({2, 2}, {1, 2, 3, 4})
      .expect<float>({2}, {3, 4})
      .expect<float>({2, 2}, {3, 1, 4, 2})
      .run();
  OpTest("Scan")
      .attribute("body", scan_body())
      .attribute("num_scan_inputs", 1)
      .input<float>({2}, {7, 8})
      .input<float>({0, 2}, {})
      .expect<float>({2}, {7, 8})
      .expect<float>({0, 2}, {})
      .run();
}

TEST(Scan, NoStepsOfUnknownRank) {
  ModelBuilder b;
  b.input("state", ElementType::float32).input("x", ElementType::float32);
  ir::Node& scan = b.node("Scan", {"state", "x"}, {"last", "all"});
  scan.set_attribute({"body", scan_body()});
  scan.set_attribute({"num_scan_inputs", int64_t{1}});
  scan.set_attribute({"scan_output_axes", std::vector<int64_t>{1}});
  b.output("last").output("all");
  NamedValues y =
      b.session().run({{"state", Tensor(Shape{2}, {7.0f, 8.0f})}, {"x", Tensor(ElementType::float32, Shape{0, 2})}});
  EXPECT_EQ(y.at("last").tensor().shape(), (Shape{2}));
  EXPECT_EQ(y.at("all").tensor().shape(), (Shape{0, 0}));
}

TEST(Scan, Version8HasABatch) {
  OpTest("Scan", 8)
      .attribute("body", scan_body())
      .attribute("num_scan_inputs", 1)
      .no_input()
      .input<float>({2, 1}, {0, 0})
      .input<float>({2, 2, 1}, {1, 2, 3, 4})
      .expect<float>({2, 1}, {2, 4})
      .expect<float>({2, 2, 1}, {1, 2, 3, 4})
      .run();
}

TEST(Scan, Version8HasLengths) {
  OpTest("Scan", 8)
      .attribute("body", scan_body())
      .attribute("num_scan_inputs", 1)
      .input<int64_t>({2}, {1, 2})
      .input<float>({2, 1}, {0, 0})
      .input<float>({2, 2, 1}, {1, 2, 3, 4})
      .expect<float>({2, 1}, {1, 4})
      .expect<float>({2, 2, 1}, {1, 0, 3, 4})
      .run();
}

TEST(Scan, Errors) {
  EXPECT_NE(OpTest("Scan")
                .attribute("body", scan_body())
                .attribute("num_scan_inputs", 3)
                .input<float>({1}, {0})
                .input<float>({1, 1}, {1})
                .error()
                .find("num_scan_inputs is 3, the node has 2 inputs"),
            std::string::npos);
}

TEST(If, TheBranchThatRunsHasOutputs) {
  EXPECT_NE(OpTest("If")
                .attribute("then_branch", GraphBuilder().outputs({}))
                .attribute("else_branch", constant_branch(Tensor(Shape{1}, {1.0f})))
                .constant<bool>({}, {true})
                .expect<float>({1}, {1})
                .error()
                .find("the branch that runs has no outputs"),
            std::string::npos);
}

TEST(If, ABranchTakesNoInputs) {
  auto branch = [] {
    return GraphBuilder()
        .input("given_by_nobody", ElementType::float32)
        .node("Relu", {"given_by_nobody"}, "r")
        .outputs({"r"});
  };
  EXPECT_EQ(
      OpTest("If")
          .attribute("then_branch", branch())
          .attribute("else_branch", constant_branch(Tensor(Shape{1}, {1.0f})))
          .input<bool>({}, {true})
          .expect<float>({1}, {1})
          .error(),
      "invalid-model in If 'tested' (node 0) > Relu (node 0), tensor 'given_by_nobody': it has no value: the graph's "
      "inputs are not all given by the node that runs it");
}

}  // namespace
}  // namespace tenon

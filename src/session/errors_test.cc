// The errors that loading and running give, word for word: users and scripts rely on them.
#include <gtest/gtest.h>

#include "model_builder.h"

namespace tenon {
namespace {

const Dim batch = Dim::symbol("batch");

TEST(LoadErrors, CyclicGraph) {
  ModelBuilder b;
  b.input("x", ElementType::float32, SymbolicShape{Dim(1)});
  b.node("Add", {"x", "c"}, {"a"}, "first");
  b.node("Relu", {"a"}, {"b"}, "second");
  b.node("Relu", {"b"}, {"c"}, "third");
  b.output("c");
  EXPECT_EQ(b.load_error(),
            "cyclic-graph in Relu 'second' (node 1): the nodes feed each other in a circle: Relu 'second' (node 1) -> "
            "Relu 'third' (node 2) -> "
            "Add 'first' (node 0) -> Relu 'second' (node 1)\n"
            "  hint: a value must be computed before it is read; look for an output name that is used twice");
}

TEST(LoadErrors, UnsortedNodesAreSorted) {
  ModelBuilder b;
  b.input("x", ElementType::float32, SymbolicShape{Dim(1)});
  b.node("Relu", {"t"}, {"y"});
  b.node("Relu", {"x"}, {"t"});
  b.output("y");
  EXPECT_EQ(b.load_error(), "");
}

TEST(LoadErrors, UndefinedNamesAllAtOnce) {
  ModelBuilder b;
  b.input("image", ElementType::float32, SymbolicShape{Dim(1)});
  b.node("Relu", {"imge"}, {"y"}, "rectify");
  b.output("y").output("nowhere");
  EXPECT_EQ(b.load_error(),
            "undefined-name: 2 names are read that nothing defines:\n"
            "  'imge', read by Relu 'rectify' (node 0); the nearest name is 'image'\n"
            "  'nowhere', read by the graph's outputs");
}

TEST(LoadErrors, DuplicateName) {
  ModelBuilder b;
  b.input("x", ElementType::float32, SymbolicShape{Dim(1)});
  b.node("Relu", {"x"}, {"y"}, "first");
  b.node("Relu", {"x"}, {"y"}, "second");
  b.output("y");
  EXPECT_EQ(b.load_error(),
            "duplicate-name, tensor 'y': the name is defined twice: as output of Relu 'first' (node 0) and as output "
            "of Relu 'second' (node 1)\n"
            "  hint: every value needs a name of its own");
}

TEST(LoadErrors, UnknownOperatorsAllAtOnce) {
  ModelBuilder b;
  b.model().opset_imports.add("my.domain", 1);
  b.input("x", ElementType::float32, SymbolicShape{Dim(1)});
  b.node("Rellu", {"x"}, {"y"}, "a");
  b.node("Rellu", {"y"}, {"z"}, "b");
  b.node("Magic", {"z"}, {"w"}, "c", "my.domain");
  b.output("w");
  EXPECT_EQ(b.load_error(),
            "unknown-operator: Tenon does not know 2 operators of this model:\n"
            "  Rellu: Rellu 'a' (node 0) and 1 more; the nearest known one is Relu\n"
            "  my.domain.Magic: my.domain.Magic 'c' (node 2); the domain 'my.domain' is unknown and the model defines "
            "no function of it\n"
            "  hint: operators of your own come with SessionOptions::custom_operators or --custom-operators");
}

TEST(LoadErrors, Attributes) {
  ModelBuilder b;
  b.input("x", ElementType::float32, SymbolicShape{Dim(1), Dim(2)});
  b.node("Concat", {"x", "x"}, {"y"}, "join");
  b.output("y");
  EXPECT_EQ(b.load_error(), "invalid-attribute in Concat 'join' (node 0): attribute 'axis' is missing");
  b.graph().nodes().front().set_attribute(ir::Attribute("axis", 1.0f));
  EXPECT_EQ(b.load_error(),
            "invalid-attribute in Concat 'join' (node 0): attribute 'axis' must be of kind int, it is of kind float");
  b.graph().nodes().front().set_attribute(ir::Attribute("axis", int64_t{1}));
  b.graph().nodes().front().set_attribute(ir::Attribute("axes", int64_t{1}));
  EXPECT_EQ(b.load_error(),
            "invalid-attribute in Concat 'join' (node 0): it has no attribute 'axes'; did the model mean 'axis'?");
}

TEST(LoadErrors, MissingInputOfANode) {
  ModelBuilder b;
  b.input("x", ElementType::float32, SymbolicShape{Dim(1)});
  b.node("Add", {"x"}, {"y"}, "sum");
  b.output("y");
  EXPECT_EQ(b.load_error(), "invalid-model in Add 'sum' (node 0): its input 1 'B' is missing");
}

TEST(LoadErrors, ConflictsNameBothEnds) {
  ModelBuilder b;
  b.input("x", ElementType::float32, SymbolicShape{Dim(2), Dim(3)});
  b.initializer("w", Tensor({4, 5}, std::span<const float>(std::vector<float>(20))));
  b.node("Relu", {"x"}, {"t"}, "rectify");
  b.node("MatMul", {"t", "w"}, {"y"}, "dense");
  b.output("y");
  EXPECT_EQ(b.load_error(),
            "shape-mismatch in MatMul 'dense' (node 1): the last axis of A and the second last of B must be equal: 3 "
            "against 4\n"
            "  input 0 't' is tensor(float) [2, 3], made by Relu 'rectify' (node 0)\n"
            "  input 1 'w' is tensor(float) [4, 5], an initializer");
}

TEST(LoadErrors, ErrorsInSubgraphsNameThePath) {
  ModelBuilder b;
  b.input("c", ElementType::boolean, SymbolicShape{});
  b.input("x", ElementType::float32, SymbolicShape{Dim(2)});
  b.initializer("w", Tensor({2}, {int64_t{1}, int64_t{2}}));
  auto branch = [&](const char* other) {
    auto graph = std::make_unique<ir::Graph>();
    ir::Node& add = graph->add_node("Add");
    add.name = "inner";
    add.set_input(0, &b.value("x"));
    add.set_input(1, &b.value(other));
    ir::Value& result = graph->add_value(std::string("r_") + other);
    add.add_output(&result);
    graph->add_output(result);
    return graph;
  };
  ir::Node& node = b.node("If", {"c"}, {"y"}, "choose");
  node.set_attribute(ir::Attribute("then_branch", branch("x")));
  node.set_attribute(ir::Attribute("else_branch", branch("w")));
  b.output("y");
  EXPECT_EQ(
      b.load_error(),
      "type-mismatch in If 'choose' (node 0) > Add 'inner' (node 0), tensor 'w': inputs 0 and 1 must have one type\n"
      "  input 0 'x' is tensor(float) [2], an input of the graph\n"
      "  input 1 'w' is tensor(int64) [2], an initializer\n"
      "  hint: insert a Cast before one of them");
}

TEST(LoadErrors, Provider) {
  ModelBuilder b;
  b.input("x", ElementType::float32, SymbolicShape{Dim(1)});
  b.node("Relu", {"x"}, {"y"});
  b.output("y");
  SessionOptions options;
  options.providers = {"npu", "cpu"};
  EXPECT_EQ(error_of([&] { b.session(options); }),
            "provider-unavailable: there is no provider 'npu' in this build\n  hint: the providers of this build are: "
            "cpu, cuda");
}

// y = x + other
Session adder() {
  ModelBuilder b;
  b.input("image", ElementType::float32, SymbolicShape{batch, 2});
  b.input("other", ElementType::float32, SymbolicShape{batch, 2});
  b.node("Add", {"image", "other"}, {"y"}, "sum");
  b.output("y");
  return b.session();
}

TEST(RunErrors, Inputs) {
  Session session = adder();
  Tensor one(ElementType::float32, {1, 2}), two(ElementType::float32, {2, 2});
  auto error = [&](const NamedValues& inputs) { return error_of([&] { session.run(inputs); }); };
  EXPECT_EQ(error({{"image", one}}), "missing-input: 1 input is not given:\n  'other' tensor(float) [batch, 2]");
  EXPECT_EQ(
      error({}),
      "missing-input: 2 inputs are not given:\n  'image' tensor(float) [batch, 2]\n  'other' tensor(float) [batch, 2]");
  EXPECT_EQ(error({{"imag", one}}),
            "unknown-name: the model has no input 'imag'; it has 'image', 'other'\n  hint: did you mean 'image'?");
  EXPECT_EQ(error({{"image", Tensor(ElementType::float64, {1, 2})}, {"other", one}}),
            "type-mismatch, tensor 'image': the model takes float, got double\n  hint: convert the input to float "
            "before the run");
  EXPECT_EQ(error({{"image", Tensor(ElementType::float32, {2})}, {"other", one}}),
            "shape-mismatch, tensor 'image': the model takes rank 2 [batch, 2], got rank 1 [2]");
  EXPECT_EQ(error({{"image", Tensor(ElementType::float32, {1, 3})}, {"other", one}}),
            "shape-mismatch, tensor 'image': axis 1 must be 2, got 3: the model takes [batch, 2], the input is [1, 3]");
  EXPECT_EQ(error({{"image", one}, {"other", two}}),
            "shape-mismatch, tensor 'other': size 'batch' is 1 on axis 0 of 'image' but 2 on axis 0 of 'other'; it "
            "must be the same everywhere");
  EXPECT_EQ(error({{"image", Sequence{}}, {"other", one}}),
            "type-mismatch, tensor 'image': the model takes tensor(float), got sequence of 0");
  RunOptions options;
  options.outputs = {"z"};
  EXPECT_EQ(error_of([&] {
              session.run({{"image", one}, {"other", one}}, options);
            }),
            "unknown-name: the model has no output 'z'; it has 'y'\n  hint: did you mean 'y'?");
}

TEST(RunErrors, ValuesThatCannotBeUsed) {
  struct Case {
    const char* op;
    std::vector<Tensor> inputs;
    std::string text;
  } cases[] = {
      {"Reshape",
       {Tensor(ElementType::float32, {2, 3}), Tensor({2}, {int64_t{4}, int64_t{-1}})},
       "Reshape 'tested' (node 0)"},
      {"Gather", {Tensor(ElementType::float32, {2, 3}), Tensor({1}, {int64_t{5}})}, "Gather 'tested' (node 0)"},
      {"Expand", {Tensor(ElementType::float32, {2}), Tensor({1}, {int64_t{3}})}, "Expand 'tested' (node 0)"},
      {"Slice",
       {Tensor(ElementType::float32, {2}), Tensor({1}, {int64_t{0}}), Tensor({1}, {int64_t{1}}),
        Tensor({1}, {int64_t{0}}), Tensor({1}, {int64_t{0}})},
       "Slice 'tested' (node 0)"},
  };
  for (const Case& c : cases) {
    ModelBuilder b;
    NamedValues feeds;
    std::vector<std::string> names;
    for (size_t i = 0; i < c.inputs.size(); ++i) {
      names.push_back("in" + std::to_string(i));
      SymbolicShape open;
      for (int axis = 0; axis < c.inputs[i].rank(); ++axis) open.push_back(Dim::unknown());
      b.input(names.back(), c.inputs[i].type(), open);
      feeds[names.back()] = c.inputs[i];
    }
    b.node(c.op, names, {"y"}, "tested");
    b.output("y");
    std::string error = error_of([&] { b.session().run(feeds); });
    EXPECT_NE(error.find(c.text), std::string::npos) << c.op << ": " << error;
  }
}

// A function of `domain` that runs `op` on its input `calls` times, one after the other.
void add_function(ModelBuilder& b, const std::string& name, const std::string& op, const std::string& op_domain,
                  int calls) {
  auto function = std::make_unique<ir::Function>();
  function->domain = "local";
  function->name = name;
  function->opset_imports.add("", ops::newest_opset);
  function->opset_imports.add("local", 1);
  function->body = std::make_unique<ir::Graph>();
  ir::Value* value = &function->body->add_value("x");
  function->body->add_input(*value);
  for (int i = 0; i < calls; ++i) {
    ir::Node& node = function->body->add_node(op, op_domain);
    node.add_input(value);
    value = &function->body->add_value("y" + std::to_string(i));
    node.add_output(value);
  }
  function->body->add_output(*value);
  b.model().functions.push_back(std::move(function));
}

std::string error_of_calls(int depth, int calls) {
  ModelBuilder b;
  b.model().opset_imports.add("local", 1);
  b.input("x", ElementType::float32, SymbolicShape{Dim(1)});
  for (int i = 0; i + 1 < depth; ++i)
    add_function(b, "f" + std::to_string(i), "f" + std::to_string(i + 1), "local", calls);
  add_function(b, "f" + std::to_string(depth - 1), "Relu", "", 1);
  b.node("f0", {"x"}, {"y"}, "", "local");
  b.output("y");
  std::string error = b.load_error();
  return error.substr(error.find(": ") == std::string::npos ? 0 : error.find(": ") + 2);
}

TEST(LoadErrors, FunctionsStayWithinLimits) {
  EXPECT_EQ(error_of_calls(10, 2), "");
  EXPECT_EQ(error_of_calls(40, 2), "the functions of the model make more than 1000000 nodes");
  EXPECT_EQ(error_of_calls(80, 1), "functions call each other more than 64 deep");
}

// Loops in loops, each of which doubles the length of what it carries.
std::unique_ptr<ir::Graph> nested_body(int depth) {
  auto graph = std::make_unique<ir::Graph>();
  auto value = [&](const char* name) { return &graph->add_value(name + std::to_string(depth)); };
  ir::Value *i = value("i"), *cond = value("cond"), *v = value("v"), *twice = value("twice"), *result = twice;
  for (ir::Value* input : {i, cond, v}) graph->add_input(*input);
  ir::Node& concat = graph->add_node("Concat");
  concat.add_input(v);
  concat.add_input(v);
  concat.add_output(twice);
  concat.set_attribute(ir::Attribute("axis", int64_t{0}));
  if (depth > 0) {
    ir::Node& loop = graph->add_node("Loop");
    for (ir::Value* input : {i, cond, twice}) loop.add_input(input);
    result = value("result");
    loop.add_output(result);
    loop.set_attribute(ir::Attribute("body", nested_body(depth - 1)));
  }
  graph->add_output(*cond);
  graph->add_output(*result);
  return graph;
}

TEST(LoadErrors, LoopsInLoopsStayWithinLimits) {
  for (int depth : {2, 40}) {
    ModelBuilder b;
    b.input("x", ElementType::float32, SymbolicShape{Dim(1)}).initializer("trips", Tensor::scalar(int64_t{1}));
    b.node("Loop", {"trips", "", "x"}, {"y"}).set_attribute(ir::Attribute("body", nested_body(depth)));
    b.output("y");
    std::string error = b.load_error();
    EXPECT_EQ(error.find("the loops around it are nested too deep to infer its types") != std::string::npos, depth > 2)
        << error;
  }
}

}  // namespace
}  // namespace tenon

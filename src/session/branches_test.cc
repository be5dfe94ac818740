#include <gtest/gtest.h>

#include <random>

#include "custom_operators.h"
#include "model_builder.h"
#include "random_floats.h"
#include "session/stages.h"

namespace tenon {
namespace {

const Dim rows = Dim::symbol("rows");

Tensor noise(const Shape& shape, unsigned seed) {
  return Tensor(shape, std::span<const float>(random_floats(shape.elements(), seed)));
}

Tensor ints(std::vector<int64_t> values) {
  return Tensor(Shape{static_cast<int64_t>(values.size())}, std::span<const int64_t>(values));
}

SessionOptions options_for(int threads, OptimizationLevel level, bool parallel_branches = true) {
  SessionOptions options;
  options.threads = threads;
  options.level = level;
  options.parallel_branches = parallel_branches;
  return options;
}

// The operators of the steps that did not run by themselves.
std::multiset<std::string> side_by_side(const Session& session, const NamedValues& inputs) {
  std::vector<StepProfile> profile;
  RunOptions options;
  options.profile = &profile;
  session.run(inputs, options);
  std::multiset<std::string> operators;
  int64_t last_end = 0;
  for (const StepProfile& step : profile) {
    if (step.thread > 0) operators.insert(step.op_type);
    EXPECT_LE(last_end, step.start_ns + step.duration_ns) << "steps are in the order in which they ended";
    last_end = step.start_ns + step.duration_ns;
  }
  return operators;
}

void expect_same(const NamedValues& actual, const NamedValues& expected, const std::string& what) {
  ASSERT_EQ(actual.size(), expected.size());
  for (const auto& [name, value] : expected)
    EXPECT_TRUE(identical(actual.at(name).tensor(), value.tensor())) << name << ", " << what;
}

// All runs give the same bits as without the option; each is done twice, the second time with the first one's plan.
// With as many threads as branches, some steps run side by side.
void expect_same_bits(const ModelBuilder& b, const std::vector<NamedValues>& runs, int as_many_as_branches = 2) {
  for (OptimizationLevel level : {OptimizationLevel::none, OptimizationLevel::all}) {
    const Session plain = b.session(options_for(2, level, false));
    std::vector<NamedValues> expected;
    for (const NamedValues& inputs : runs) expected.push_back(plain.run(inputs));
    EXPECT_TRUE(side_by_side(plain, runs[0]).empty());
    for (int threads : {1, 2, 3, 4}) {
      const Session session = b.session(options_for(threads, level));
      for (size_t i = 0; i < runs.size(); ++i) {
        const std::string what = std::to_string(threads) + " threads, run " + std::to_string(i);
        expect_same(session.run(runs[i]), expected[i], what);
        expect_same(session.run(runs[i]), expected[i], what + " again");
      }
      const bool is_any = !side_by_side(session, runs[0]).empty();
      EXPECT_TRUE(threads == 1 ? !is_any : is_any || threads != as_many_as_branches) << threads << " threads";
    }
  }
}

TEST(Branches, AreWorthRunningSideBySideWhereThreadsHaveEnoughToDo) {
  const double much = 1e6;
  struct Case {
    std::vector<double> work;
    int threads;
    bool expected;
  };
  const Case cases[] = {
      {{}, 2, false},
      {{much}, 2, false},
      {{much, much}, 1, false},
      {{much, much}, 2, true},
      {{much, much}, 3, false},
      {{much / 5, much / 5}, 3, true},
      {{much, 100, 100}, 2, false},
      {{much, much, much}, 2, false},
      {{much, much / 2, much / 2}, 2, true},
      {{much / 2, much, much / 2}, 2, true},
      {{much, much, much, much, much}, 2, false},
      {{much / 5, much / 5, much / 5, much / 5, much / 5}, 2, true},
      {{much, much, 0, 0}, 2, true},
      {{100, 100, 100, 100}, 2, false},
  };
  for (const Case& c : cases)
    EXPECT_EQ(is_worth_side_by_side(c.work, c.threads), c.expected)
        << testing::PrintToString(c.work) << ", " << c.threads << " threads";
}

// Modules of four branches of different length, joined by their channels.
ModelBuilder inception() {
  ModelBuilder b;
  b.input("x", ElementType::float32, SymbolicShape{rows, 16, 16, 16});
  unsigned seed = 0;
  auto conv = [&](const std::string& from, const std::string& to, int64_t in, int64_t out, int64_t size) {
    ++seed;
    b.initializer("w_" + to, noise({out, in, size, size}, seed)).initializer("b_" + to, noise({out}, seed));
    b.node("Conv", {from, "w_" + to, "b_" + to}, {to + "_sum"})
        .set_attribute(ir::Attribute("pads", std::vector<int64_t>(4, size / 2)));
    b.node("Relu", {to + "_sum"}, {to});
  };
  std::string last = "x";
  int64_t channels = 16;
  for (const std::string module : {"m1", "m2"}) {
    conv(last, module + "_a", channels, 16, 1);
    conv(last, module + "_b1", channels, 16, 1);
    conv(module + "_b1", module + "_b", 16, 16, 3);
    conv(last, module + "_c1", channels, 8, 1);
    conv(module + "_c1", module + "_c2", 8, 16, 3);
    conv(module + "_c2", module + "_c", 16, 16, 3);
    ir::Node& pool = b.node("MaxPool", {last}, {module + "_pool"});
    pool.set_attribute(ir::Attribute("kernel_shape", std::vector<int64_t>{3, 3}));
    pool.set_attribute(ir::Attribute("pads", std::vector<int64_t>{1, 1, 1, 1}));
    conv(module + "_pool", module + "_d", channels, 16, 1);
    b.node("Concat", {module + "_a", module + "_b", module + "_c", module + "_d"}, {module})
        .set_attribute(ir::Attribute("axis", int64_t{1}));
    last = module;
    channels = 64;
  }
  b.node("GlobalAveragePool", {last}, {"y"});
  b.output("y");
  return b;
}

TEST(Branches, OfConvolutionsGiveTheSameBits) {
  std::vector<NamedValues> runs;
  for (int64_t n : {2, 1, 3, 4, 5, 6, 2}) runs.push_back({{"x", noise({n, 16, 16, 16}, static_cast<unsigned>(n))}});
  expect_same_bits(inception(), runs);
}

// Queries, keys and values from one x; views and transposes between.
ModelBuilder attention() {
  const int64_t width = 64, heads = 4;
  ModelBuilder b;
  b.input("x", ElementType::float32, SymbolicShape{1, rows, width});
  b.initializer("split", ints({1, -1, heads, width / heads})).initializer("join", ints({1, -1, width}));
  for (const std::string name : {"q", "k", "v"}) {
    b.initializer("w_" + name, noise({width, width}, static_cast<unsigned>(name[0])));
    b.node("MatMul", {"x", "w_" + name}, {name + "_all"});
    b.node("Reshape", {name + "_all", "split"}, {name + "_split"});
    b.node("Transpose", {name + "_split"}, {name})
        .set_attribute(
            ir::Attribute("perm", name == "k" ? std::vector<int64_t>{0, 2, 3, 1} : std::vector<int64_t>{0, 2, 1, 3}));
  }
  b.node("MatMul", {"q", "k"}, {"scores"});
  b.node("Softmax", {"scores"}, {"shares"});
  b.node("MatMul", {"shares", "v"}, {"mixed"});
  b.node("Transpose", {"mixed"}, {"back"}).set_attribute(ir::Attribute("perm", std::vector<int64_t>{0, 2, 1, 3}));
  b.node("Reshape", {"back", "join"}, {"joined"});
  b.node("Add", {"joined", "x"}, {"residual"});
  // A gate of two branches.
  b.node("Sigmoid", {"residual"}, {"gate"});
  b.node("Tanh", {"residual"}, {"candidate"});
  b.node("Mul", {"gate", "candidate"}, {"y"});
  b.output("y").output("candidate");
  return b;
}

TEST(Branches, OfAttentionGiveTheSameBits) {
  std::vector<NamedValues> runs;
  for (int64_t n : {128, 3, 129, 130, 131, 132, 150, 128}) runs.push_back({{"x", noise({1, n, 64}, 5)}});
  const ModelBuilder b = attention();
  expect_same_bits(b, runs, 3);
  // Also what comes after Reshapes, which do not run.
  const auto seen = side_by_side(b.session(options_for(3, OptimizationLevel::none)), {{"x", noise({1, 512, 64}, 5)}});
  EXPECT_EQ(seen.count("MatMul"), 3u);
  EXPECT_EQ(seen.count("Transpose"), 3u);
}

TEST(Branches, OfTwoDirectionsGiveTheSameBits) {
  const int64_t hidden = 32, width = 24;
  ModelBuilder b;
  b.input("x", ElementType::float32, SymbolicShape{rows, 2, width});
  for (const std::string direction : {"forward", "reverse"}) {
    std::string last = "x";
    int64_t in = width;
    for (const std::string layer : {"1", "2"}) {
      const std::string name = direction + layer;
      b.initializer("w" + name, noise({1, 3 * hidden, in}, 1))
          .initializer("r" + name, noise({1, 3 * hidden, hidden}, 2));
      ir::Node& gru = b.node("GRU", {last, "w" + name, "r" + name}, {name + "_y"});
      gru.set_attribute(ir::Attribute("hidden_size", hidden));
      gru.set_attribute(ir::Attribute("direction", direction));
      b.initializer("one" + name, ints({1}));
      b.node("Squeeze", {name + "_y", "one" + name}, {name});
      last = name;
      in = hidden;
    }
  }
  b.node("Concat", {"forward2", "reverse2"}, {"y"}).set_attribute(ir::Attribute("axis", int64_t{-1}));
  b.output("y");
  std::vector<NamedValues> runs;
  for (int64_t n : {20, 1, 21, 22, 23, 20}) runs.push_back({{"x", noise({n, 2, width}, 3)}});
  expect_same_bits(b, runs);
}

// Graphs at random, of what views, parts and writing over inputs come from.
TEST(Branches, OfRandomGraphsGiveTheSameBits) {
  for (unsigned seed = 0; seed < 60; ++seed) {
    std::mt19937 random(seed);
    auto below = [&](size_t n) { return static_cast<size_t>(random() % n); };
    ModelBuilder b;
    b.input("x", ElementType::float32, SymbolicShape{rows, 64});
    b.initializer("keep", ints({0, 0})).initializer("turned", ints({64, -1})).initializer("back", ints({-1, 64}));
    b.initializer("zero", ints({0}))
        .initializer("half", ints({32}))
        .initializer("end", ints({64}))
        .initializer("one", ints({1}));
    std::vector<std::string> made = {"x"};
    for (int i = 0; i < 24; ++i) {
      const std::string y = "v" + std::to_string(i);
      const std::string &p = made[made.size() - 1 - below(std::min<size_t>(made.size(), 6))],
                        &q = made[made.size() - 1 - below(std::min<size_t>(made.size(), 6))];
      const char* const unary[] = {"Neg", "Abs", "Tanh", "Relu"};
      const char* const binary[] = {"Add", "Sub", "Max", "Mul"};
      switch (below(8)) {
        case 0:
        case 1:
        case 2:
          b.node(unary[below(4)], {p}, {y});
          break;
        case 3:
        case 4:
          b.node(binary[below(4)], {p, q}, {y});
          break;
        case 5:
          b.node("Reshape", {p, "turned"}, {y + "_turned"});
          b.node("Neg", {y + "_turned"}, {y + "_negated"});
          b.node("Reshape", {y + "_negated", "back"}, {y});
          break;
        case 6: {
          b.node("Split", {p}, {y + "_top", y + "_rest"}).set_attribute(ir::Attribute("num_outputs", int64_t{2}));
          b.node("Tanh", {y + "_top"}, {y + "_top2"});
          b.node("Concat", {y + "_rest", y + "_top2"}, {y}).set_attribute(ir::Attribute("axis", int64_t{0}));
          break;
        }
        default:
          b.node("Slice", {p, "zero", "half", "one"}, {y + "_left"});
          b.node("Slice", {q, "half", "end", "one"}, {y + "_right"});
          b.node("Concat", {y + "_left", y + "_right"}, {y}).set_attribute(ir::Attribute("axis", int64_t{1}));
      }
      made.push_back(y);
    }
    b.output(made.back()).output(made[made.size() - 3]);
    std::vector<NamedValues> runs;
    for (int64_t n : {256, 8, 258, 260, 262, 264, 256}) runs.push_back({{"x", noise({n, 64}, seed)}});
    const Session plain = b.session(options_for(1, OptimizationLevel::none, false));
    const Session session = b.session(options_for(3, OptimizationLevel::none));
    for (const NamedValues& inputs : runs) {
      const NamedValues expected = plain.run(inputs);
      for (int again = 0; again < 2; ++again)
        expect_same(session.run(inputs), expected, "seed " + std::to_string(seed));
    }
  }
}

// Iterations of two branches, whose sum is the next state.
ModelBuilder loop() {
  ModelBuilder b;
  b.input("x", ElementType::float32, SymbolicShape{rows, 64});
  b.initializer("trips", Tensor::scalar(int64_t{5}));
  b.initializer("w1", noise({64, 64}, 1)).initializer("w2", noise({64, 64}, 2));
  auto body = std::make_unique<ir::Graph>();
  auto add = [&](const char* op, std::vector<ir::Value*> inputs, const char* output) -> ir::Value* {
    ir::Node& node = body->add_node(op);
    for (size_t i = 0; i < inputs.size(); ++i) node.set_input(i, inputs[i]);
    ir::Value& made = body->add_value(output);
    node.add_output(&made);
    return &made;
  };
  ir::Value &iteration = body->add_value("iteration"), &condition = body->add_value("condition"),
            &state = body->add_value("state");
  iteration.type = ir::Type::tensor(ElementType::int64, SymbolicShape{});
  condition.type = ir::Type::tensor(ElementType::boolean, SymbolicShape{});
  state.type = ir::Type::tensor(ElementType::float32, SymbolicShape{rows, 64});
  for (ir::Value* input : {&iteration, &condition, &state}) body->add_input(*input);
  ir::Value* left = add("Tanh", {add("MatMul", {&state, &b.value("w1")}, "p1")}, "t1");
  ir::Value* right = add("Tanh", {add("MatMul", {&state, &b.value("w2")}, "p2")}, "t2");
  body->add_output(*add("Identity", {&condition}, "again"));
  body->add_output(*add("Sub", {left, right}, "next"));
  body->add_output(*left);
  b.node("Loop", {"trips", "", "x"}, {"y", "all"}).set_attribute(ir::Attribute("body", std::move(body)));
  b.output("y").output("all");
  return b;
}

TEST(Branches, OfALoopGiveTheSameBits) {
  std::vector<NamedValues> runs;
  for (int64_t n : {64, 65, 3, 64}) runs.push_back({{"x", noise({n, 64}, 9)}});
  expect_same_bits(loop(), runs);
}

TEST(Branches, WriteToTheCallersMemory) {
  const Session plain = attention().session(options_for(2, OptimizationLevel::all, false)),
                session = attention().session(options_for(2, OptimizationLevel::all));
  for (int64_t n : {128, 128, 64, 128}) {
    const NamedValues inputs = {{"x", noise({1, n, 64}, 5)}};
    Tensor y(ElementType::float32, {1, n, 64}), candidate(ElementType::float32, {1, n, 64});
    RunOptions options;
    options.destinations = {{"y", y}, {"candidate", candidate}};
    const NamedValues outputs = session.run(inputs, options);
    EXPECT_EQ(outputs.at("y").tensor().raw(), y.raw());
    EXPECT_EQ(outputs.at("candidate").tensor().raw(), candidate.raw());
    expect_same(outputs, plain.run(inputs), std::to_string(n));
  }
}

// Branches of Gathers of which some get indices that are not there.
TEST(Branches, TheFirstOneThatFailsIsNamed) {
  ModelBuilder b;
  b.input("x", ElementType::float32, SymbolicShape{512, 64});
  std::vector<std::string> parts;
  for (const std::string name : {"a", "b", "c", "d", "e", "f"}) {
    b.input(name, ElementType::int64, SymbolicShape{512});
    b.node("Gather", {"x", name}, {name + "_rows"}, "gather_" + name);
    parts.push_back(name + "_rows");
  }
  b.node("Sum", parts, {"y"});
  b.output("y");
  const Session session = b.session(options_for(3, OptimizationLevel::none));
  const NamedValues good = [&] {
    NamedValues inputs = {{"x", noise({512, 64}, 1)}};
    for (const char* name : {"a", "b", "c", "d", "e", "f"}) inputs[name] = ints(std::vector<int64_t>(512, 7));
    return inputs;
  }();
  EXPECT_EQ(side_by_side(session, good).count("Gather"), 6u);
  const Tensor expected = session.run(good)["y"].tensor();
  for (int again = 0; again < 20; ++again) {
    NamedValues bad = good;
    for (const char* name : {"b", "c", "f"}) bad[name] = ints(std::vector<int64_t>(512, 512));
    std::vector<StepProfile> profile;
    RunOptions options;
    if (again % 2) options.profile = &profile;
    const std::string error = error_of([&] { session.run(bad, options); });
    EXPECT_NE(error.find("in Gather 'gather_b' (node 1)"), std::string::npos) << error;
    for (const StepProfile& step : profile) EXPECT_EQ(step.op_type, "Gather");
    EXPECT_TRUE(identical(session.run(good)["y"].tensor(), expected));
  }
}

TEST(Branches, CanBeCancelled) {
  std::stop_source source;
  CustomOperator stop = CustomOperator("my", "Stop")
                            .input("x", {ElementType::float32})
                            .output("y", {ElementType::float32})
                            .infer(same_as_input)
                            .cpu([&](CustomRun& run) {
                              std::ranges::fill(run.output(0).mutable_data<float>(), 0.0f);
                              source.request_stop();
                            });
  ModelBuilder b;
  b.model().opset_imports.add("my", 1);
  b.input("x", ElementType::float32, SymbolicShape{rows, 64});
  std::vector<std::string> parts;
  for (int i = 0; i < 6; ++i) {
    parts.push_back("p" + std::to_string(i));
    b.node("Stop", {"x"}, {parts.back()}, "", "my");
  }
  b.node("Sum", parts, {"y"});
  b.output("y");
  SessionOptions options = options_for(2, OptimizationLevel::none);
  options.custom_operators = {stop};
  RunOptions run;
  run.cancel = source.get_token();
  const std::string error = error_of([&] { b.session(options).run({{"x", noise({512, 64}, 1)}}, run); });
  EXPECT_TRUE(error.starts_with("cancelled in ")) << error;
}

}  // namespace
}  // namespace tenon

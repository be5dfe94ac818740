#include <gtest/gtest.h>

#include <atomic>
#include <numeric>

#include "custom_operators.h"

namespace tenon {
namespace {

constexpr auto float32 = ElementType::float32;
constexpr auto float64 = ElementType::float64;
constexpr auto int64 = ElementType::int64;

TEST(CustomOperator, RunsAndPassesSymbolsThrough) {
  ModelBuilder b = one_node("Scale");
  b.node("Neg", {"y"}, {"z"});
  b.output("z");
  Session session = b.session(with({scale()}));
  EXPECT_EQ(session.outputs()[1].shape, std::vector<std::string>{"n"});
  ASSERT_EQ(session.placement().size(), 2);
  EXPECT_EQ(session.placement()[0].node, "my.Scale 'mine' (node 0)");
  EXPECT_EQ(session.placement()[0].provider, "cpu");
  EXPECT_EQ(session.placement()[0].kernel, "my.Scale");
  EXPECT_EQ(session.placement()[0].bytes, "8*n");
  std::vector<StepProfile> profile;
  RunOptions options;
  options.profile = &profile;
  for (int n : {3, 5, 3}) {
    std::vector<float> numbers(static_cast<size_t>(n));
    std::iota(numbers.begin(), numbers.end(), 1.0f);
    NamedValues outputs = session.run({{"x", Tensor({n}, std::span<const float>(numbers))}}, options);
    EXPECT_EQ(outputs.at("z").tensor().data<float>().back(), static_cast<float>(-2 * n));
  }
  ASSERT_EQ(profile.size(), 6);
  EXPECT_EQ(profile[0].op_type, "Scale");
  EXPECT_EQ(profile[2].outputs, std::vector<std::string>{"float [5]"});
}

TEST(CustomOperator, TypeVariables) {
  Session session = one_node("Scale", {"x"}, {"y"}, float64).session(with({scale()}));
  EXPECT_EQ(session.outputs()[0].type, "tensor(double)");
  EXPECT_TRUE(identical(run_y(session, {{"x", Tensor({2}, {1.0, 2.0})}}), Tensor({2}, {2.0, 4.0})));
  EXPECT_EQ(load_error(one_node("Scale", {"x"}, {"y"}, int64), scale()),
            "type-mismatch in my.Scale 'mine' (node 0), tensor 'x': input 0 'x' takes tensors of float or double\n"
            "  input 0 'x' is tensor(int64) [n], an input of the graph");
  ModelBuilder b = one_node("Sum", {"a", "b"});
  b.value("b").type = ir::Type::tensor(float64, SymbolicShape{Dim::symbol("n")});
  CustomOperator sum = scale("Sum").input("b", "T").types("T", {float32, float64});
  EXPECT_EQ(load_error(b, sum),
            "type-mismatch in my.Sum 'mine' (node 0), tensor 'b': inputs 0 and 1 must have one type\n"
            "  input 0 'a' is tensor(float) [n], an input of the graph\n"
            "  input 1 'b' is tensor(double) [n], an input of the graph\n"
            "  hint: insert a Cast before one of them");
}

// A type that the model does not say is that of the tensor which comes.
TEST(CustomOperator, TypesThatOnlyARunKnows) {
  ModelBuilder b;
  b.model().opset_imports.add("my", 1);
  b.graph().add_input(b.value("x"));
  b.node("Scale", {"x"}, {"y"}, "mine", "my");
  b.output("y");
  Session session = b.session(with({scale()}));
  EXPECT_TRUE(identical(run_y(session, {{"x", Tensor({1}, {3.0})}}), Tensor({1}, {6.0})));
  EXPECT_TRUE(identical(run_y(session, {{"x", floats({3})}}), floats({6})));
  EXPECT_NE(error_of([&] {
              session.run({{"x", Tensor({1}, {int64_t{3}})}});
            }).find("takes tensors of float or double"),
            std::string::npos);
}

TEST(CustomOperator, AttributesOfEveryKind) {
  CustomOperator op = CustomOperator("my", "Attributes")
                          .input("x", {float32})
                          .output("y", {float32})
                          .attribute("a", 1.5)
                          .attribute("b", 7)
                          .attribute("c", "text")
                          .attribute("d", std::vector<float>{1, 2})
                          .attribute("e", std::vector<int64_t>{3})
                          .optional_attribute<std::vector<std::string>>("f")
                          .required_attribute<Tensor>("g")
                          .infer([](CustomInference& i) { i.set_output(0, float32, SymbolicShape{Dim(8)}); })
                          .cpu([](CustomRun& run) {
                            auto y = run.output(0).mutable_data<float>();
                            auto texts = run.find_attribute("f");
                            y[0] = run.attribute<float>("a");
                            y[1] = static_cast<float>(run.attribute<int64_t>("b"));
                            y[2] = static_cast<float>(run.attribute<std::string>("c").size());
                            y[3] = run.attribute<std::vector<float>>("d").back();
                            y[4] = static_cast<float>(run.attribute<std::vector<int64_t>>("e").back());
                            y[5] = texts ? static_cast<float>(std::get<std::vector<std::string>>(*texts).size()) : -1;
                            y[6] = run.attribute<Tensor>("g").data<float>()[0];
                            y[7] = 0;
                          });
  ModelBuilder b = one_node("Attributes");
  ir::Node& node = b.graph().nodes().front();
  EXPECT_EQ(load_error(b, op), "invalid-attribute in my.Attributes 'mine' (node 0): attribute 'g' is missing");
  node.set_attribute(ir::Attribute("g", floats({9})));
  NamedValues feeds = {{"x", floats({0})}};
  EXPECT_TRUE(identical(run_y(b.session(with({op})), feeds), floats({1.5, 7, 4, 2, 3, -1, 9, 0})));
  node.set_attribute(ir::Attribute("a", 2.5f));
  node.set_attribute(ir::Attribute("b", int64_t{8}));
  node.set_attribute(ir::Attribute("c", std::string("s")));
  node.set_attribute(ir::Attribute("d", std::vector<float>{5}));
  node.set_attribute(ir::Attribute("e", std::vector<int64_t>{6}));
  node.set_attribute(ir::Attribute("f", std::vector<std::string>{"a", "b"}));
  EXPECT_TRUE(identical(run_y(b.session(with({op})), feeds), floats({2.5, 8, 1, 5, 6, 2, 9, 0})));
  node.set_attribute(ir::Attribute("b", 1.0f));
  EXPECT_EQ(
      load_error(b, op),
      "invalid-attribute in my.Attributes 'mine' (node 0): attribute 'b' must be of kind int, it is of kind float");
  ModelBuilder other = one_node("Scale");
  other.graph().nodes().front().set_attribute(ir::Attribute("factr", 1.0f));
  EXPECT_EQ(load_error(other, scale()),
            "invalid-attribute in my.Scale 'mine' (node 0): it has no attribute 'factr'; did the model mean 'factor'?");
}

TEST(CustomOperator, OptionalAndVariadicParameters) {
  CustomOperator biased = CustomOperator("my", "Biased")
                              .input("x", {float32})
                              .optional_input("bias", {float32})
                              .output("y", {float32})
                              .infer(same_as_input)
                              .cpu([](CustomRun& run) {
                                const float bias = run.has_input(1) ? run.input(1).data<float>()[0] : 100;
                                auto x = run.input(0).data<float>();
                                auto y = run.output(0).mutable_data<float>();
                                for (size_t i = 0; i < x.size(); ++i) y[i] = x[i] + bias;
                              });
  EXPECT_TRUE(identical(run_y(one_node("Biased").session(with({biased})), {{"x", floats({1})}}), floats({101})));
  EXPECT_TRUE(
      identical(run_y(one_node("Biased", {"x", "b"}).session(with({biased})), {{"x", floats({1})}, {"b", floats({5})}}),
                floats({6})));
  EXPECT_EQ(load_error(one_node("Biased", {"x", "b", "c"}), biased),
            "invalid-model in my.Biased 'mine' (node 0): it takes at most 2 inputs, 3 are given");

  // Output i is input i plus the number of inputs.
  CustomOperator many = CustomOperator("my", "Many")
                            .variadic_input("xs", "T", 2)
                            .variadic_output("ys", "T")
                            .types("T", {float32})
                            .infer([](CustomInference& i) {
                              for (size_t k = 0; k < i.output_count(); ++k)
                                i.set_output(k, i.input_type(k), i.input_shape(k));
                            })
                            .cpu([](CustomRun& run) {
                              for (size_t k = 0; k < run.output_count(); ++k) {
                                if (!run.wants_output(k)) continue;
                                const float x = run.input(k).data<float>()[0];
                                run.output(k).mutable_data<float>()[0] = x + static_cast<float>(run.input_count());
                              }
                            });
  Session session = one_node("Many", {"a", "b", "c"}, {"y", "", "z"}).session(with({many}));
  NamedValues outputs = session.run({{"a", floats({1})}, {"b", floats({2})}, {"c", floats({3})}});
  EXPECT_TRUE(identical(outputs.at("y").tensor(), floats({4})));
  EXPECT_TRUE(identical(outputs.at("z").tensor(), floats({6})));
  EXPECT_EQ(load_error(one_node("Many", {"a"}), many),
            "invalid-model in my.Many 'mine' (node 0): it takes at least 2 inputs, 1 are given");
}

TEST(CustomOperator, SizeThatDependsOnData) {
  CustomOperator positive = CustomOperator("my", "Positive")
                                .input("x", {float32})
                                .output("y", {float32})
                                .output("where", {int64})
                                .cpu([](CustomRun& run) {
                                  std::vector<int64_t> where;
                                  auto x = run.input(0).data<float>();
                                  for (size_t i = 0; i < x.size(); ++i) {
                                    if (x[i] > 0) where.push_back(static_cast<int64_t>(i));
                                  }
                                  Shape shape{static_cast<int64_t>(where.size())};
                                  if (run.wants_output(1))
                                    run.set_output(1, Tensor(shape, std::span<const int64_t>(where)));
                                  auto y = run.output(0, shape).mutable_data<float>();
                                  for (size_t i = 0; i < where.size(); ++i) y[i] = x[static_cast<size_t>(where[i])];
                                });
  ModelBuilder b = one_node("Positive", {"x"}, {"y", "where"});
  b.node("Neg", {"y"}, {"z"});
  b.output("z");
  Session session = b.session(with({positive}));
  EXPECT_EQ(session.outputs()[1].type, "tensor(int64)");
  NamedValues outputs = session.run({{"x", floats({1, -1, 2})}});
  EXPECT_TRUE(identical(outputs.at("where").tensor(), Tensor({2}, {int64_t{0}, int64_t{2}})));
  EXPECT_TRUE(identical(outputs.at("z").tensor(), floats({-1, -2})));
  EXPECT_TRUE(identical(session.run({{"x", floats({-1})}}).at("z").tensor(), floats({})));
}

// The shape follows from the content of an input, as that of Reshape does.
TEST(CustomOperator, ShapesFromContents) {
  CustomOperator fill =
      CustomOperator("my", "Fill")
          .input("shape", {int64})
          .output("y", {float32})
          .infer([](CustomInference& i) {
            auto sizes = i.input_values(0);
            i.set_output(0, float32, sizes ? std::optional(SymbolicShape(sizes->begin(), sizes->end())) : std::nullopt);
          })
          .cpu([](CustomRun& run) {
            for (float& y : run.output(0).mutable_data<float>()) y = 1;
          });
  ModelBuilder b;
  b.model().opset_imports.add("my", 1);
  b.input("x", float32, SymbolicShape{Dim::symbol("n"), Dim(2)});
  b.node("Shape", {"x"}, {"shape"});
  b.node("Fill", {"shape"}, {"y"}, "mine", "my");
  b.output("y");
  Session session = b.session(with({fill}));
  EXPECT_EQ(session.outputs()[0].shape, (std::vector<std::string>{"n", "2"}));
  EXPECT_TRUE(identical(run_y(session, {{"x", Tensor(float32, {1, 2})}}), Tensor({1, 2}, {1.0f, 1.0f})));
  Session direct = one_node("Fill", {"x"}, {"y"}, int64).session(with({fill}));
  for (int64_t n : {1, 3, 2}) EXPECT_EQ(run_y(direct, {{"x", Tensor({1}, {n})}}).shape(), Shape{n});
  EXPECT_NE(error_of([&] {
              direct.run({{"x", Tensor({1}, {int64_t{-2}})}});
            }).find("shape-mismatch in my.Fill 'mine' (node 0): output 0 would have the shape [-2]"),
            std::string::npos);
}

// State is made once per node, from what is constant.
TEST(CustomOperator, KernelWithState) {
  static std::atomic<int> made, destroyed;
  struct Dot : CustomKernel {
    std::vector<double> packed;
    explicit Dot(const CustomKernelInfo& info) {
      ++made;
      if (const Tensor* weights = info.constant(1))
        packed.assign(weights->data<float>().begin(), weights->data<float>().end());
    }
    ~Dot() override { ++destroyed; }
    void run(CustomRun& run) const override {
      auto x = run.input(0).data<float>();
      double sum = packed.empty() ? -1 : 0;
      for (size_t i = 0; i < packed.size(); ++i) sum += x[i] * packed[i];
      run.output(0).mutable_data<float>()[0] = static_cast<float>(sum);
    }
  };
  CustomOperator dot = CustomOperator("my", "Dot")
                           .input("x", {float32})
                           .input("weights", {float32})
                           .output("y", {float32})
                           .infer([](CustomInference& i) {
                             if (i.input_shape(0) && i.input_shape(1))
                               i.equal((*i.input_shape(0))[0], (*i.input_shape(1))[0], "lengths");
                             i.set_output(0, float32, SymbolicShape());
                           })
                           .cpu_kernel([](const CustomKernelInfo& info) { return std::make_unique<Dot>(info); });
  ModelBuilder b;
  b.model().opset_imports.add("my", 1);
  b.input("x", float32, SymbolicShape{Dim::symbol("n")});
  b.initializer("w", floats({1, 10}));
  b.node("Dot", {"x", "w"}, {"y"}, "mine", "my");
  b.output("y");
  {
    Session session = b.session(with({dot}));
    EXPECT_EQ(made, 1);
    for (float first : {1.0f, 2.0f})
      EXPECT_EQ(run_y(session, {{"x", floats({first, 3})}}).data<float>()[0], first + 30);
    EXPECT_EQ(made, 1);
    EXPECT_EQ(error_of([&] {
                session.run({{"x", floats({1, 2, 3})}});
              }),
              "shape-mismatch in my.Dot 'mine' (node 0): lengths must be equal: 3 against 2\n"
              "  input 0 'x' is tensor(float) [3], an input of the graph\n"
              "  input 1 'w' is tensor(float) [2], an initializer");
  }
  EXPECT_EQ(destroyed, 1);
}

}  // namespace
}  // namespace tenon

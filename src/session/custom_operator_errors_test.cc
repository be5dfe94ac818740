#include <gtest/gtest.h>

#include <stdexcept>

#include "custom_operators.h"

namespace tenon {
namespace {

constexpr auto float32 = ElementType::float32;
constexpr auto float64 = ElementType::float64;
constexpr auto int64 = ElementType::int64;

std::string run_error(const CustomOperator& op) {
  Session session = one_node(op.name).session(with({op}));
  return error_of([&] { session.run({{"x", floats({1, 2, 3})}}); });
}

TEST(CustomOperator, ErrorsOfTheKernel) {
  const auto kernel = [](std::function<void(CustomRun&)> run) { return scale().cpu(std::move(run)); };
  const std::string at = " in my.Scale 'mine' (node 0): ";
  EXPECT_EQ(run_error(kernel([](CustomRun&) { throw std::runtime_error("broken"); })),
            "custom-operator" + at + "its kernel failed: broken");
  EXPECT_EQ(run_error(kernel([](CustomRun&) { throw "text"; })),
            "custom-operator" + at + "its kernel failed with an exception that is no std::exception");
  EXPECT_EQ(run_error(kernel([](CustomRun&) { throw Error(ErrorCode::invalid_value, "bad index"); })),
            "invalid-value" + at + "bad index");
  EXPECT_EQ(run_error(kernel([](CustomRun& run) {
              run.parallel_for(100, 1, [](int64_t, int64_t end) {
                if (end > 3) throw std::runtime_error("in a thread");
              });
            })),
            "custom-operator" + at + "its kernel failed: in a thread");
  EXPECT_EQ(run_error(kernel([](CustomRun&) {})), "custom-operator" + at + "its kernel does not give output 0 'y'");
  EXPECT_EQ(run_error(kernel([](CustomRun& run) { run.output(0, {4}); })),
            "custom-operator" + at + "its kernel gives output 0 'y' the shape [4], inferred is [3]");
  EXPECT_EQ(run_error(kernel([](CustomRun& run) {
              run.set_output(0, Tensor({3}, {1.0, 2.0, 3.0}));
            })),
            "custom-operator" + at + "its kernel gives output 0 'y' of double, inferred is float");
  EXPECT_EQ(run_error(kernel([](CustomRun& run) { run.output(1); })),
            "custom-operator" + at + "its kernel asks for output 1 '', which the node leaves out: wants_output tells");
  EXPECT_EQ(run_error(kernel([](CustomRun& run) { run.input(1); })),
            "custom-operator" + at + "its kernel asks for input 1, which the node does not have");
  EXPECT_EQ(run_error(kernel([](CustomRun& run) { run.attribute<float>("factr"); })),
            "custom-operator" + at + "its code asks for attribute 'factr', which it does not declare");
  EXPECT_EQ(run_error(kernel([](CustomRun& run) { run.attribute<int64_t>("factor"); })),
            "custom-operator" + at + "its code asks for attribute 'factor', which is declared with another type");
  EXPECT_EQ(run_error(scale().infer([](CustomInference& i) { i.set_output(0, i.input_type(0)); })),
            "custom-operator" + at +
                "its kernel asks for output 0 'y', whose shape inference leaves open: it has to give one");
  CustomOperator half_open = scale().infer([](CustomInference& i) {
    i.set_output(0, float32, SymbolicShape{Dim::unknown(), Dim(2)});
  });
  EXPECT_EQ(run_error(half_open.cpu([](CustomRun& run) {
              run.output(0, {7, 3});
            })),
            "custom-operator" + at + "its kernel gives output 0 'y' the shape [7, 3], inferred is [?, 2]");
}

TEST(CustomOperator, ErrorsOfTheRuleAndOfMakingTheKernel) {
  const auto error = [](const CustomOperator& op) { return load_error(one_node("Scale"), op); };
  const std::string at = " in my.Scale 'mine' (node 0): ";
  EXPECT_EQ(error(scale().infer([](CustomInference& i) { i.fail("too thin"); })),
            "shape-mismatch" + at + "too thin\n  input 0 'x' is tensor(float) [n], an input of the graph");
  EXPECT_EQ(error(scale().infer([](CustomInference&) { throw std::runtime_error("broken"); })),
            "custom-operator" + at + "its inference rule failed: broken");
  EXPECT_EQ(error(scale().infer([](CustomInference& i) { i.set_output(0, int64); })),
            "custom-operator" + at + "its inference rule makes output 0 'y' int64; it declares float or double");
  EXPECT_EQ(
      error(scale().infer([](CustomInference& i) { i.set_output(0, float64); })),
      "custom-operator" + at + "its inference rule makes output 0 'y' double; it declares the type of an input, float");
  EXPECT_EQ(error(scale().infer([](CustomInference& i) { i.set_output(1, float32); })),
            "custom-operator" + at + "its inference rule sets output 1, it declares 1");
  CustomOperator open = CustomOperator("my", "Scale").input("x", {float32}).output("y", {float32, int64});
  EXPECT_EQ(error(open.cpu([](CustomRun&) {})),
            "custom-operator" + at + "its inference rule leaves the type of output 0 'y' open");
  CustomOperator stateful = scale();
  stateful.run = nullptr;
  stateful.cpu_kernel(
      [](const CustomKernelInfo&) -> std::unique_ptr<CustomKernel> { throw std::runtime_error("broken"); });
  EXPECT_EQ(error(stateful), "custom-operator" + at + "its kernel failed: broken");
  stateful.cpu_kernel([](const CustomKernelInfo&) { return nullptr; });
  EXPECT_EQ(error(stateful), "custom-operator" + at + "its cpu_kernel makes none");
}

TEST(CustomOperator, DefinitionsThatMakeNoSense) {
  const auto error = [](const CustomOperator& op) { return load_error(one_node("Scale"), op); };
  const std::string begin = "invalid-argument: custom_operators[0] defines my.Scale in a way that makes no sense: ";
  EXPECT_EQ(error(CustomOperator("my", "Scale").output("y", {float32})),
            begin + "it has no kernel: call cpu or cpu_kernel");
  EXPECT_EQ(error(scale().cpu_kernel([](const CustomKernelInfo&) { return nullptr; })),
            begin + "it has two kernels: call either cpu or cpu_kernel");
  EXPECT_EQ(error(scale("Scale", 0)), begin + "version 0 is none, they count from 1");
  EXPECT_EQ(error(scale().input("z", "U")), begin + "no types are given for the type variable 'U'");
  EXPECT_EQ(error(scale().input("z", std::vector<ElementType>())), begin + "input 'z' has no types");
  EXPECT_EQ(error(scale().attribute("factor", 1)), begin + "attribute 'factor' is declared twice");
  EXPECT_EQ(error(scale().variadic_input("zs", {float32}).input("z", {float32})),
            begin + "input 'zs' stands for any number, so it must be the last");
}

TEST(CustomOperator, NeverReplacesAnother) {
  CustomOperator relu = scale();
  relu.domain = "ai.onnx";
  relu.name = "Relu";
  EXPECT_EQ(load_error(one_node("Scale"), relu),
            "invalid-argument: custom_operators[0] defines Relu in ai.onnx, a domain of ONNX itself\n"
            "  hint: give it a domain of its own, and the model's nodes too");
  EXPECT_EQ(
      error_of([&] {
        one_node("Scale").session(with({scale(), scale("Other"), scale()}));
      }),
      "invalid-argument: my.Scale of version 1 is defined twice: by custom_operators[0] and by custom_operators[2]");
  EXPECT_EQ(load_error(one_node("Scalee"), scale()),
            "unknown-operator: Tenon does not know an operator of this model:\n"
            "  my.Scalee: my.Scalee 'mine' (node 0); the nearest known one is Scale");
}

}  // namespace
}  // namespace tenon

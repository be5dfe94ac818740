#include "tenon/tools/health.h"

#include <gtest/gtest.h>

#include <cmath>

#include "model_builder.h"
#include "providers/cpu/cpu_provider.h"
#include "session/providers.h"

namespace tenon::tools {
namespace {

// Runs whatever it is told to run on the CPU.
class Picky final : public Provider {
 public:
  explicit Picky(std::string op) : op_(std::move(op)) {}
  std::string_view name() const override { return "picky"; }
  std::string_view memory() const override { return "host"; }
  Claim claim(const ir::Node& node) const override {
    return node.op_type == op_ ? Claim::yes("picky " + op_) : Claim::no("it only runs " + op_);
  }
  std::unique_ptr<Kernel> compile(const NodeInfo& info) const override { return cpu_.compile(info); }

 private:
  std::string op_;
  CpuProvider cpu_;
};

// One large product, and three small nodes.
ModelBuilder product() {
  ModelBuilder b;
  b.input("x", ElementType::float32, SymbolicShape{Dim::symbol("n"), 64});
  b.initializer("w", Tensor(Shape{64, 64}, std::span<const float>(std::vector<float>(64 * 64, 0.01f))));
  b.node("MatMul", {"x", "w"}, {"a"}, "product");
  b.node("Relu", {"a"}, {"b"}, "relu");
  b.node("Neg", {"b"}, {"c"}, "neg");
  b.node("Abs", {"c"}, {"y"}, "abs");
  b.output("y");
  return b;
}

HealthOptions with_provider(const std::string& op) {
  register_provider("picky", [op] { return std::make_unique<Picky>(op); });
  HealthOptions options;
  options.require_provider = "picky";
  return options;
}

Session session_with(const std::vector<std::string>& providers) {
  SessionOptions options;
  options.level = OptimizationLevel::none;
  options.providers = providers;
  return product().session(options);
}

const HealthCheck& check_of(const HealthReport& report, const std::string& name) {
  return *std::ranges::find(report.checks, name, &HealthCheck::name);
}

TEST(Health, OneNodeOfFourMayBeAllThatCounts) {
  const HealthOptions options = with_provider("MatMul");
  const HealthReport report = check_health(session_with({"picky", "cpu"}), options);
  EXPECT_TRUE(report.healthy()) << report.text();
  EXPECT_GT(*report.provider_share, 0.9);
  EXPECT_LT(*report.provider_share, 1);
  EXPECT_NE(check_of(report, "provider").reason.find("(1 of 4 nodes)"), std::string::npos);
}

TEST(Health, ThreeNodesOfFourMayBeNothing) {
  const HealthOptions options = with_provider("Abs");
  const HealthReport report = check_health(session_with({"picky", "cpu"}), options);
  EXPECT_FALSE(report.healthy());
  EXPECT_LT(*report.provider_share, 0.1);
  EXPECT_NE(check_of(report, "provider")
                .reason.find("90 % are required; it declined MatMul 'product' (node 0): it only "
                             "runs Abs"),
            std::string::npos)
      << check_of(report, "provider").reason;
}

TEST(Health, OutputsMustBeFinite) {
  ModelBuilder b;
  b.input("x", ElementType::float32, SymbolicShape{2});
  b.node("Log", {"x"}, {"y"}, "log");
  b.output("y");
  const Session session = b.session();
  HealthOptions options;
  options.inputs.values = {{"x", Tensor({2}, {1.0f, 0.0f})}};
  EXPECT_EQ(check_health(session, options).text(),
            "unhealthy: finite: output 'y' has 0 NaN and 1 infinite of 2 elements");
  options.allow_infinite = true;
  EXPECT_TRUE(check_health(session, options).healthy());
  options.inputs.values = {{"x", Tensor({2}, {1.0f, -1.0f})}};
  EXPECT_FALSE(check_health(session, options).healthy());
}

TEST(Health, OutputsMustBeAsExpected) {
  const Session session = session_with({"cpu"});
  HealthOptions options;
  const Tensor x(Shape{1, 64}, std::span<const float>(std::vector<float>(64, 1.0f)));
  options.inputs.values = {{"x", x}};
  options.expected = {{"y", Tensor(Shape{1, 64}, std::span<const float>(std::vector<float>(64, 0.64f)))}};
  EXPECT_TRUE(check_health(session, options).healthy());
  options.expected = {{"y", x}};
  const HealthReport report = check_health(session, options);
  EXPECT_FALSE(report.healthy());
  EXPECT_NE(report.text().find("expected: output 'y': 64 of 64 elements differ"), std::string::npos) << report.text();
  options.expected = {{"z", x}};
  EXPECT_NE(error_of([&] { check_health(session, options); }).find("no output 'z'"), std::string::npos);
  options.inputs.values.clear();
  EXPECT_NE(error_of([&] { check_health(session, options); }).find("given inputs only"), std::string::npos);
}

TEST(Health, ARunThatFailsIsTheLastCheck) {
  HealthOptions options;
  options.inputs.values = {{"x", Tensor({2}, {1.0f, 2.0f})}};
  const HealthReport report = check_health(session_with({"cpu"}), options);
  EXPECT_FALSE(report.healthy());
  EXPECT_EQ(report.checks.size(), 1u);
  EXPECT_EQ(report.checks[0].name, "run");
  ASSERT_TRUE(report.error);
}

TEST(Health, LimitsOfTime) {
  HealthOptions options;
  options.max_latency_seconds = 1e-12;
  const HealthReport report = check_health(session_with({"cpu"}), options);
  EXPECT_FALSE(check_of(report, "latency").passed);
  EXPECT_EQ(report.latency.runs, options.runs);
  options.max_latency_seconds = 3600;
  EXPECT_TRUE(check_health(session_with({"cpu"}), options).healthy());
}

TEST(Health, WhatCannotBeLoadedIsNotHealthy) {
  const HealthReport report = check_health("none.onnx");
  EXPECT_FALSE(report.healthy());
  EXPECT_EQ(report.error->code(), ErrorCode::missing_file);
  HealthOptions options;
  options.require_provider = "warp";
  const HealthReport other = check_health(TENON_SOURCE_DIR "/examples/digits/digits.onnx", options);
  EXPECT_EQ(other.checks[0].name, "provider");
  EXPECT_EQ(other.error->code(), ErrorCode::provider_unavailable);
}

TEST(Health, OptionsThatMakeNoSense) {
  const Session session = session_with({"cpu"});
  HealthOptions options;
  options.min_share = 2;
  EXPECT_NE(error_of([&] { check_health(session, options); }).find("invalid-argument"), std::string::npos);
}

}  // namespace
}  // namespace tenon::tools

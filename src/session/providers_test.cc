#include "session/providers.h"

#include <gtest/gtest.h>

#include "model_builder.h"
#include "providers/cpu/cpu_provider.h"
#include "tenon/session_config.h"

namespace tenon {
namespace {

// Runs Relu and Add on the CPU, but pretends to have memory of its own.
class FakeProvider final : public Provider {
 public:
  std::string_view name() const override { return "fake"; }
  std::string_view memory() const override { return "fake memory"; }
  Claim claim(const ir::Node& node) const override {
    if (node.op_type == "Relu" || node.op_type == "Add") return Claim::yes("fake " + node.op_type);
    return Claim::no("it only runs Relu and Add");
  }
  std::unique_ptr<Kernel> compile(const NodeInfo& info) const override { return cpu_.compile(info); }

 private:
  CpuProvider cpu_;
};

ModelBuilder chain() {
  ModelBuilder b;
  b.input("x", ElementType::float32, SymbolicShape{Dim::symbol("n"), 2});
  b.node("Relu", {"x"}, {"a"}, "first");
  b.node("Exp", {"a"}, {"b"}, "second");
  b.node("Add", {"b", "a"}, {"y"}, "third");
  b.output("y");
  return b;
}

SessionOptions with(std::vector<std::string> providers) {
  SessionOptions options;
  options.level = OptimizationLevel::none;
  options.providers = std::move(providers);
  return options;
}

class Providers : public testing::Test {
 protected:
  void SetUp() override {
    register_provider("fake", [] { return std::make_unique<FakeProvider>(); });
    register_provider("broken", []() -> std::unique_ptr<Provider> {
      throw Error(ErrorCode::provider_unavailable, "libbroken.so.1 is missing (looked in /usr/lib)", "install broken");
    });
  }
};

TEST_F(Providers, ClaimNodesInTheUsersOrder) {
  Session session = chain().session(with({"fake", "cpu"}));
  ASSERT_EQ(session.placement().size(), 3u);
  EXPECT_EQ(session.placement()[0].provider, "fake");
  EXPECT_EQ(session.placement()[0].kernel, "fake Relu");
  EXPECT_EQ(session.placement()[0].flops, "2*n");
  EXPECT_EQ(session.placement()[0].bytes, "16*n");
  EXPECT_EQ(session.placement()[1].provider, "cpu");
  ASSERT_EQ(session.placement()[1].declined.size(), 1u);
  EXPECT_EQ(session.placement()[1].declined[0],
            (std::pair<std::string, std::string>{"fake", "it only runs Relu and Add"}));
  NamedValues outputs = session.run({{"x", Tensor({1, 2}, {-1.0f, 0.0f})}});
  EXPECT_EQ(outputs["y"].tensor().data<float>()[0], 1.0f);
  EXPECT_EQ(chain().session(with({"cpu", "fake"})).placement()[0].provider, "cpu");
}

TEST_F(Providers, ThoseThatCanStartAreListed) {
  EXPECT_EQ(available_providers(), (std::vector<std::string>{"cpu", "fake"}));
}

TEST_F(Providers, TensorsThatChangeMemoryAreListed) {
  Session session = chain().session(with({"fake", "cpu"}));
  std::vector<std::string> copies;
  for (const ValueCopy& copy : session.copies())
    copies.push_back(copy.value + ": " + copy.from + " to " + copy.to + ", " + copy.bytes);
  EXPECT_EQ(copies, (std::vector<std::string>{"x: host to fake, 8*n", "a: fake to cpu, 8*n", "b: cpu to fake, 8*n",
                                              "y: fake to host, 8*n"}));
  EXPECT_TRUE(chain().session(with({"cpu"})).copies().empty());
}

std::string totals(const PlacementReport& report) {
  std::string text;
  for (const ProviderTotals& p : report.providers)
    text += p.provider + ": " + std::to_string(p.nodes) + " nodes, " + p.flops + " FLOPs, " + p.bytes + " bytes, " +
            std::to_string(p.unknown) + " unknown; ";
  return text + std::to_string(report.copies.size()) + " copies, " + report.copied_bytes + " bytes, " +
         std::to_string(report.unknown_copies) + " unknown";
}

TEST_F(Providers, TotalsAreExpressionsOrNumbers) {
  Session session = chain().session(with({"fake", "cpu", "CPUExecutionProvider"}));
  EXPECT_EQ(totals(session.placement_report()),
            "fake: 2 nodes, 4*n FLOPs, 40*n bytes, 0 unknown; cpu: 1 nodes, 2*n FLOPs, 16*n bytes, 0 unknown; "
            "4 copies, 32*n bytes, 0 unknown");
  const PlacementReport report = session.placement_report({{"x", {10, 2}}});
  EXPECT_EQ(totals(report),
            "fake: 2 nodes, 40 FLOPs, 400 bytes, 0 unknown; cpu: 1 nodes, 20 FLOPs, 160 bytes, 0 unknown; "
            "4 copies, 320 bytes, 0 unknown");
  EXPECT_EQ(report.nodes[1].flops, "20");
  EXPECT_EQ(report.nodes[1].declined.size(), 1u);
  EXPECT_EQ(report.copies[0].bytes, "80");
  EXPECT_EQ(session.placement()[1].flops, "2*n");
  EXPECT_EQ(totals(chain().session(with({"cpu", "fake"})).placement_report({{"x", {1, 2}}})),
            "cpu: 3 nodes, 6 FLOPs, 56 bytes, 0 unknown; fake: 0 nodes, 0 FLOPs, 0 bytes, 0 unknown; "
            "0 copies, 0 bytes, 0 unknown");
}

TEST_F(Providers, TotalsLeaveOutWhatIsUnknown) {
  ModelBuilder b;
  b.input("x", ElementType::float32, SymbolicShape{Dim::unknown(), 2});
  b.node("Relu", {"x"}, {"a"});
  b.node("NonZero", {"a"}, {"y"});
  b.output("y");
  Session session = b.session(with({"fake", "cpu"}));
  EXPECT_EQ(session.placement()[0].flops, "");
  EXPECT_EQ(totals(session.placement_report()),
            "fake: 1 nodes, 0 FLOPs, 0 bytes, 1 unknown; cpu: 1 nodes, 0 FLOPs, 0 bytes, 1 unknown; "
            "2 copies, 0 bytes, 2 unknown");
  // A shape settles sizes without a name too, but not how many elements are not 0.
  EXPECT_EQ(totals(session.placement_report({{"x", {3, 2}}})),
            "fake: 1 nodes, 6 FLOPs, 48 bytes, 0 unknown; cpu: 1 nodes, 0 FLOPs, 0 bytes, 1 unknown; "
            "2 copies, 48 bytes, 0 unknown");
}

TEST_F(Providers, TotalsForShapesFollowTheArithmeticOnThem) {
  ModelBuilder b;
  b.input("x", ElementType::float32, SymbolicShape{Dim::symbol("n"), Dim::unknown()});
  b.initializer("most", Tensor({1}, {int64_t{4}}));
  b.node("Shape", {"x"}, {"shape"});
  b.node("Min", {"shape", "most"}, {"smaller"});
  b.node("ConstantOfShape", {"smaller"}, {"y"});
  b.node("Exp", {"y"}, {"z"});
  b.output("z");
  const PlacementReport report = b.session(with({"cpu"})).placement_report({{"x", {3, 100}}});
  EXPECT_EQ(report.nodes.back().op_type, "Exp");
  EXPECT_EQ(report.nodes.back().flops, "12");
  EXPECT_EQ(report.providers[0].unknown, 0);
}

TEST_F(Providers, TotalsThatDoNotFitAreLeftOut) {
  ModelBuilder b;
  const Dim n = Dim::symbol("n");
  b.input("x", ElementType::float32, SymbolicShape{n, n});
  b.node("Relu", {"x"}, {"y"});
  b.output("y");
  EXPECT_EQ(totals(b.session(with({"cpu"})).placement_report({{"x", {4'000'000'000, 4'000'000'000}}})),
            "cpu: 1 nodes, 0 FLOPs, 0 bytes, 1 unknown; 0 copies, 0 bytes, 0 unknown");
  EXPECT_EQ(
      totals(b.session(with({"cpu"})).placement_report({{"x", {1'000'000'000, 1'000'000'000}}})),
      "cpu: 1 nodes, 1000000000000000000 FLOPs, 8000000000000000000 bytes, 0 unknown; 0 copies, 0 bytes, 0 unknown");
  b.node("Relu", {"x"}, {"z"});
  b.output("z");
  EXPECT_EQ(totals(b.session(with({"cpu"})).placement_report({{"x", {1'000'000'000, 1'000'000'000}}})),
            "cpu: 2 nodes, 2000000000000000000 FLOPs,  bytes, 0 unknown; 0 copies, 0 bytes, 0 unknown");
}

TEST_F(Providers, TotalsWantShapesThatFitTheModel) {
  Session session = chain().session(with({"cpu"}));
  EXPECT_EQ(error_of([&] {
              session.placement_report({{"X", {1, 2}}});
            }),
            "unknown-name: the model has no input 'X'; it has 'x'\n  hint: did you mean 'x'?");
  EXPECT_EQ(error_of([&] {
              session.placement_report({{"x", {1}}});
            }),
            "shape-mismatch, tensor 'x': the model takes rank 2 [n, 2], got rank 1 [1]");
  EXPECT_EQ(error_of([&] {
              session.placement_report({{"x", {1, 3}}});
            }),
            "shape-mismatch, tensor 'x': axis 1 must be 2, got 3: the model takes [n, 2], the input is [1, 3]");
}

TEST_F(Providers, OneThatCannotStartIsAnError) {
  EXPECT_EQ(error_of([] {
              chain().session(with({"broken", "cpu"}));
            }),
            "provider-unavailable: libbroken.so.1 is missing (looked in /usr/lib)\n  hint: install broken");
  EXPECT_EQ(error_of([] { chain().session(with({"nosuch"})); }).substr(0, 68),
            "provider-unavailable: there is no provider 'nosuch' in this build\n  ");
}

TEST_F(Providers, FallingBackIsAllowedAndRecorded) {
  SessionOptions options = with({"broken", "CPUExecutionProvider"});
  options.allow_fallback = true;
  Session session = chain().session(options);
  ASSERT_EQ(session.notes().size(), 1u);
  EXPECT_EQ(session.notes()[0], "provider 'broken' is not used: libbroken.so.1 is missing (looked in /usr/lib)");
  EXPECT_EQ(session.placement()[0].provider, "cpu");
  EXPECT_EQ(session.placement()[0].declined[0].first, "broken");
  options.providers = {"broken"};
  EXPECT_NE(error_of([&] { chain().session(options); }), "");
}

TEST_F(Providers, WhatNoneRunsIsAnErrorWithEveryReason) {
  EXPECT_EQ(error_of([] { chain().session(with({"fake"})); }),
            "unsupported in Exp 'second' (node 1): no provider runs this node (fake: it only runs Relu and Add)");
  SessionOptions strict = with({"fake", "cpu"});
  set_config(strict, "session.disable_cpu_ep_fallback", "1");
  EXPECT_EQ(error_of([&] { chain().session(strict); }), error_of([] { chain().session(with({"fake"})); }));
}

}  // namespace
}  // namespace tenon

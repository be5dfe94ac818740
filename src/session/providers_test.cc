#include "session/providers.h"

#include <gtest/gtest.h>

#include "model_builder.h"
#include "providers/cpu/cpu_provider.h"

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

TEST_F(Providers, TensorsThatChangeMemoryAreListed) {
  Session session = chain().session(with({"fake", "cpu"}));
  std::vector<std::string> copies;
  for (const ValueCopy& copy : session.copies())
    copies.push_back(copy.value + ": " + copy.from + " to " + copy.to + ", " + copy.bytes);
  EXPECT_EQ(copies, (std::vector<std::string>{"x: host to fake, 8*n", "a: fake to cpu, 8*n", "b: cpu to fake, 8*n",
                                              "y: fake to host, 8*n"}));
  EXPECT_TRUE(chain().session(with({"cpu"})).copies().empty());
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
}

}  // namespace
}  // namespace tenon

#include "tenon/tools/check.h"

#include <gtest/gtest.h>

#include "model_builder.h"

namespace tenon::tools {
namespace {

OnnxModel model_of(const ModelBuilder& builder) {
  const std::string bytes = builder.bytes();
  return OnnxModel::from_bytes(std::as_bytes(std::span(bytes)));
}

std::vector<std::string> codes(const CheckReport& report) {
  std::vector<std::string> list;
  for (const Finding& finding : report.findings) list.push_back(finding.code);
  return list;
}

ModelBuilder one_node(const std::string& op, int64_t opset = 17) {
  ModelBuilder builder(opset);
  builder.input("x", ElementType::float32, SymbolicShape{Dim::symbol("n"), 3});
  builder.node(op, {"x"}, {"y"}, "node");
  builder.output("y");
  return builder;
}

TEST(Check, SoundModel) {
  ModelBuilder builder = one_node("Relu");
  const CheckReport report = check(model_of(builder));
  EXPECT_TRUE(report.ok());
  EXPECT_EQ(codes(report), std::vector<std::string>{});
  EXPECT_EQ(report.nodes, 1);
}

TEST(Check, GravestFirst) {
  ModelBuilder builder = one_node("Relo");
  builder.node("Relu", {"x"}, {"dead"});
  const CheckReport report = check(model_of(builder));
  EXPECT_FALSE(report.ok());
  EXPECT_EQ(codes(report), (std::vector<std::string>{"unknown-operator", "dead-node", "unnamed-node"}));
  EXPECT_EQ(report.count(Severity::error), 1);
  EXPECT_EQ(report.findings[0].node, "Relo 'node' (node 0)");
}

TEST(Check, RulesCanBeLeftOut) {
  ModelBuilder builder = one_node("Relo");
  CheckOptions options;
  options.disabled = {"unknown-operator"};
  EXPECT_TRUE(check(model_of(builder), options).findings.empty());
  options.disabled = {"unknown-operators"};
  EXPECT_NE(error_of([&] { check(model_of(builder), options); }).find("did you mean 'unknown-operator'?"),
            std::string::npos);
}

TEST(Check, TargetByOpset) {
  ModelBuilder builder = one_node("Gelu", 20);
  CheckOptions options;
  options.target = "opset==13";
  options.model_name = "gelu.onnx";
  const CheckReport report = check(model_of(builder), options);
  EXPECT_EQ(codes(report), (std::vector<std::string>{"target-opset", "target-operator"}));
  EXPECT_EQ(report.findings[1].fix, "`tenon convert gelu.onnx --opset 13 -o OUT`");
  options.target = "opset==20";
  EXPECT_TRUE(check(model_of(builder), options).ok());
}

TEST(Check, UnknownTargets) {
  ModelBuilder builder = one_node("Relu");
  for (const char* target : {"onnxruntime", "caffe==1", "opset==new", "opset==0", "onnxruntime==", "tensorrt==1"}) {
    CheckOptions options;
    options.target = target;
    EXPECT_NE(error_of([&] { check(model_of(builder), options); }).find("is no target that is known"),
              std::string::npos)
        << target;
  }
}

}  // namespace
}  // namespace tenon::tools

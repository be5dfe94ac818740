#include "passes/quantization_reasons.h"

#include <gtest/gtest.h>

#include "model_builder.h"

namespace tenon {
namespace {

using enum ElementType;

struct Model : ModelBuilder {
  Model() {
    input("x", float32, SymbolicShape{2, 4});
    initializer("scale", Tensor(Shape{}, {0.1f}));
    initializer("zero", Tensor(Shape{}, {uint8_t{128}}));
    initializer("zero16", Tensor(Shape{}, {uint16_t{128}}));
  }
  void pair(const std::string& from, const std::string& to, const std::string& zero = "zero",
            const std::string& scale = "scale") {
    node("QuantizeLinear", {from, scale, zero}, {to + "_q"}, "q_" + to);
    node("DequantizeLinear", {to + "_q", scale, zero}, {to}, "d_" + to);
  }
  // What the placement says of the node of this name.
  std::string reason(const std::string& name) const {
    const Session session = this->session();
    for (const NodePlacement& node : session.placement()) {
      if (node.node.find("'" + name + "'") == std::string::npos) continue;
      for (const auto& [who, reason] : node.declined) {
        if (who == "qdq") return reason;
      }
      return "no reason";
    }
    return "no node";
  }
};

TEST(QuantizationReasons, Borders) {
  Model b;
  b.pair("x", "y");
  b.output("y");
  EXPECT_EQ(b.reason("q_y"), "a border: it quantizes 'x', which the model is given in floats");
  EXPECT_EQ(b.reason("d_y"), "a border: 'y' is an output of the model, in floats");
}

TEST(QuantizationReasons, OperatorsWithoutIntegers) {
  Model b;
  b.pair("x", "a");
  b.node("LpNormalization", {"a"}, {"n"}, "norm");
  b.pair("n", "y");
  b.output("y");
  EXPECT_EQ(b.reason("d_a"), "it is read in floats: LpNormalization 'norm' (node 2) has no kernel on bytes");
  EXPECT_EQ(b.reason("q_y"), "LpNormalization 'norm' (node 2) has no kernel on bytes");
}

TEST(QuantizationReasons, AlsoReadInFloats) {
  Model b;
  b.pair("x", "a");
  b.node("Transpose", {"a"}, {"t"}, "turn");
  b.node("LpNormalization", {"x"}, {"n"}, "norm");
  b.node("LpNormalization", {"n"}, {"m"}, "again");
  b.pair("n", "y");
  b.output("y").output("m").output("t");
  EXPECT_EQ(b.reason("q_y"), "'n' is also read in floats, by LpNormalization 'again' (node 4)");
}

TEST(QuantizationReasons, Parameters) {
  Model b;
  b.input("s", float32, SymbolicShape{});
  b.node("LpNormalization", {"x"}, {"n"}, "norm");
  b.pair("n", "wide", "zero16");
  b.pair("n", "computed", "zero", "s");
  b.node("LpNormalization", {"wide"}, {"y"});
  b.node("LpNormalization", {"computed"}, {"z"});
  b.output("y").output("z");
  EXPECT_EQ(b.reason("q_wide"), "there are no steps that compute with uint16; 8-bit integers have them");
  EXPECT_EQ(b.reason("d_computed"), "its scale is computed; make it a constant");
}

}  // namespace
}  // namespace tenon

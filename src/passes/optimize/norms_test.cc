#include <gtest/gtest.h>

#include "pass_test.h"

namespace tenon {
namespace {

struct Form {
  ElementType type = ElementType::float32;
  bool centered = true;  // LayerNormalization rather than RMSNormalization
  bool power = true;     // Pow(d, 2) rather than d * d
  bool divides = true;   // d / root rather than d * (1 / root)
  bool widens = false;   // computes in float32
  bool scales = true;
  std::vector<int64_t> axes = {-1};
};

ModelBuilder norm(const Form& form) {
  ModelBuilder b;
  b.input("x", form.type, SymbolicShape{Dim::symbol("n"), 2, 4});
  b.initializer("axes", Tensor({static_cast<int64_t>(form.axes.size())}, std::span<const int64_t>(form.axes)));
  const ElementType inner = form.widens ? ElementType::float32 : form.type;
  auto constant = [&](const char* name, Tensor tensor, ElementType type) {
    b.initializer(std::string(name) + ".f", std::move(tensor));
    b.node("Cast", {std::string(name) + ".f"}, {name}).set_attribute({"to", static_cast<int64_t>(type)});
  };
  constant("epsilon", Tensor(Shape{}, {1e-3f}), inner);
  constant("two", Tensor(Shape{}, {2.0f}), inner);
  constant("one", Tensor(Shape{}, {1.0f}), inner);
  constant("scale", Tensor({4}, {1.0f, 2.0f, 3.0f, 4.0f}), form.type);
  constant("bias", Tensor({4}, {0.5f, 0.25f, -1.0f, 2.0f}), form.type);
  std::string x = "x";
  if (form.widens) {
    b.node("Cast", {"x"}, {"wide"}).set_attribute({"to", int64_t{1}});
    x = "wide";
  }
  std::string d = x;
  if (form.centered) {
    b.node("ReduceMean", {x, "axes"}, {"mean"});
    b.node("Sub", {x, "mean"}, {"d"});
    d = "d";
  }
  if (form.power)
    b.node("Pow", {d, "two"}, {"square"});
  else
    b.node("Mul", {d, d}, {"square"});
  b.node("ReduceMean", {"square", "axes"}, {"variance"});
  b.node("Add", {"variance", "epsilon"}, {"sum"});
  b.node("Sqrt", {"sum"}, {"root"});
  if (form.divides) {
    b.node("Div", {d, "root"}, {"unit"});
  } else {
    b.node("Div", {"one", "root"}, {"inverse"});
    b.node("Mul", {d, "inverse"}, {"unit"});
  }
  std::string y = "unit";
  if (form.widens) {
    b.node("Cast", {y}, {"narrow"}).set_attribute({"to", static_cast<int64_t>(form.type)});
    y = "narrow";
  }
  if (form.scales) {
    b.node("Mul", {"scale", y}, {"scaled"});
    y = "scaled";
    if (form.centered) {
      b.node("Add", {y, "bias"}, {"shifted"});
      y = "shifted";
    }
  }
  b.output(y);
  return b;
}

// The line of the only node that is left.
std::string last_line(const std::string& text) {
  const size_t end = text.find_last_of('\n', text.size() - 2);
  return text.substr(end + 1, text.size() - end - 2);
}

const std::vector<std::string> passes = {"fold-constants", "layer-norm", "rms-norm"};

TEST(LayerNorm, InEveryForm) {
  for (bool power : {false, true}) {
    for (bool divides : {false, true}) {
      ModelBuilder b = norm({.power = power, .divides = divides});
      EXPECT_LT(change_by_extended(b), 1e-5);
      EXPECT_EQ(last_line(optimized(b, passes)),
                "shifted = LayerNormalization(x, scale, bias) {axis=-1, epsilon=0.001}");
    }
  }
}

TEST(LayerNorm, WithoutScaleAndOverSeveralAxes) {
  ModelBuilder b = norm({.scales = false, .axes = {1, -1}});
  EXPECT_LT(change_by_extended(b), 1e-5);
  EXPECT_EQ(last_line(optimized(b, passes)),
            "unit = LayerNormalization(x, /constant/tenon_5) {axis=-2, epsilon=0.001}");
}

TEST(LayerNorm, InHalfPrecisionComputedWide) {
  ModelBuilder b = norm({.type = ElementType::float16, .widens = true});
  EXPECT_LT(change_by_extended(b), 2e-3);
  EXPECT_EQ(last_line(optimized(b, passes)), "shifted = LayerNormalization(x, scale, bias) {axis=-1, epsilon=0.001}");
}

TEST(LayerNorm, NotOfOtherAxesOrUsedOrKeptValues) {
  ModelBuilder middle = norm({.scales = false, .axes = {1}});
  optimized(middle, {"layer-norm", "rms-norm"});
  EXPECT_TRUE(last_rewrites().empty());
  ModelBuilder kept = norm({});
  optimized(kept, {"layer-norm"}, {"variance"});
  EXPECT_TRUE(last_rewrites().empty());
  ModelBuilder used = norm({});
  used.output("d");
  optimized(used, {"layer-norm"});
  EXPECT_TRUE(last_rewrites().empty());
}

TEST(LayerNorm, KeepsAValueBetweenScaleAndBias) {
  ModelBuilder b = norm({});
  const std::string text = optimized(b, passes, {"scaled"});
  EXPECT_NE(text.find("scaled = LayerNormalization(x, scale) {axis=-1, epsilon=0.001}\n"), std::string::npos) << text;
  EXPECT_EQ(last_line(text), "shifted = Add(scaled, bias)");
}

TEST(RmsNorm, InEveryForm) {
  for (bool power : {false, true}) {
    for (bool divides : {false, true}) {
      ModelBuilder b = norm({.centered = false, .power = power, .divides = divides});
      EXPECT_LT(change_by_extended(b), 1e-5);
      EXPECT_EQ(last_line(optimized(b, passes)), "scaled = RMSNormalization(x, scale) {axis=-1, epsilon=0.001}");
    }
  }
}

TEST(RmsNorm, InHalfPrecisionComputedWide) {
  ModelBuilder b = norm({.type = ElementType::bfloat16, .centered = false, .divides = false, .widens = true});
  EXPECT_LT(change_by_extended(b), 2e-2);
  EXPECT_EQ(last_line(optimized(b, passes)), "scaled = RMSNormalization(x, scale) {axis=-1, epsilon=0.001}");
}

}  // namespace
}  // namespace tenon

#include <gtest/gtest.h>

#include <cmath>
#include <numbers>

#include "pass_test.h"

namespace tenon {
namespace {

Tensor number(float value) { return Tensor(Shape{}, {value}); }

// Steps like "e = Erf d" that compute y from x; names that are numbers are constants.
ModelBuilder formula(const std::vector<std::string>& steps, ElementType type = ElementType::float32) {
  ModelBuilder b;
  b.input("x", type, SymbolicShape{Dim::symbol("n"), 5});
  for (const std::string& step : steps) {
    std::vector<std::string> words;
    size_t start = 0;
    while (start <= step.size()) {
      size_t end = std::min(step.find(' ', start), step.size());
      words.push_back(step.substr(start, end - start));
      start = end + 1;
    }
    std::vector<std::string> inputs(words.begin() + 3, words.end());
    for (const std::string& name : inputs) {
      if (!b.value(name).is_initializer() && (std::isdigit(name[0]) || name[0] == '-'))
        b.initializer(name, number(std::stof(name)));
    }
    b.node(words[2], inputs, {words[0]});
  }
  b.output("y");
  return b;
}

TEST(Gelu, InEveryOrder) {
  const std::vector<std::vector<std::string>> orders = {
      {"a = Div x 1.41421354", "b = Erf a", "c = Add b 1", "d = Mul x c", "y = Mul d 0.5"},
      {"a = Mul x 0.707106769", "b = Erf a", "c = Add 1 b", "d = Mul 0.5 x", "y = Mul d c"},
      {"a = Div x 1.41421354", "b = Erf a", "c = Add b 1", "d = Mul c 0.5", "y = Mul d x"},
  };
  for (const auto& steps : orders) {
    ModelBuilder b = formula(steps);
    EXPECT_LT(change_by_extended(b), 1e-6);
    EXPECT_EQ(optimized(b, {"gelu"}), "y = Gelu(x)\n");
  }
}

TEST(Gelu, ApproximatedWithTanh) {
  const std::vector<std::vector<std::string>> orders = {
      {"a = Pow x 3", "b = Mul a 0.044715", "c = Add x b", "d = Mul c 0.797884583", "e = Tanh d", "f = Add e 1",
       "g = Mul x 0.5", "y = Mul g f"},
      {"a = Mul x x", "b = Mul a x", "c = Mul 0.044715 b", "d = Add x c", "e = Mul 0.797884583 d", "f = Tanh e",
       "g = Add 1 f", "h = Mul x g", "y = Mul h 0.5"},
      {"a = Mul x 0.044715", "b = Mul a x", "c = Add b 1", "d = Mul x 0.797884583", "e = Mul d c", "f = Tanh e",
       "g = Add f 1", "h = Mul x 0.5", "y = Mul h g"},
  };
  for (const auto& steps : orders) {
    ModelBuilder b = formula(steps);
    EXPECT_LT(change_by_extended(b), 1e-6);
    EXPECT_EQ(optimized(b, {"tanh-gelu"}), "y = Gelu(x) {approximate=\"tanh\"}\n");
  }
}

TEST(Gelu, NotWithOtherNumbersOrUses) {
  ModelBuilder wrong = formula({"a = Div x 1.5", "b = Erf a", "c = Add b 1", "d = Mul x c", "y = Mul d 0.5"});
  optimized(wrong, {"gelu"});
  EXPECT_TRUE(last_rewrites().empty());
  const std::vector<std::string> steps = {"a = Div x 1.41421354", "b = Erf a", "c = Add b 1", "d = Mul x c",
                                          "y = Mul d 0.5"};
  ModelBuilder kept = formula(steps), used = formula(steps), grown = formula(steps);
  optimized(kept, {"gelu"}, {"c"});
  EXPECT_TRUE(last_rewrites().empty());
  used.output("b");
  optimized(used, {"gelu"});
  EXPECT_TRUE(last_rewrites().empty());
  grown.initializer("0.5", Tensor({1, 1, 1}, {0.5f}));
  optimized(grown, {"gelu"});
  EXPECT_TRUE(last_rewrites().empty());
}

TEST(Swish, WithAndWithoutFactor) {
  ModelBuilder plain = formula({"a = Sigmoid x", "y = Mul x a"});
  EXPECT_LT(change_by_extended(plain), 1e-6);
  EXPECT_EQ(optimized(plain, {"swish"}), "y = Swish(x) {alpha=1}\n");
  ModelBuilder scaled = formula({"a = Mul 1.702 x", "b = Sigmoid a", "y = Mul b x"});
  EXPECT_LT(change_by_extended(scaled), 1e-6);
  EXPECT_EQ(optimized(scaled, {"swish"}), "y = Swish(x) {alpha=1.702}\n");
}

TEST(Swish, NotOfOtherValues) {
  ModelBuilder other = formula({"b = Neg x", "a = Sigmoid b", "y = Mul x a"});
  optimized(other, {"swish"});
  EXPECT_TRUE(last_rewrites().empty());
  ModelBuilder vector = formula({"a = Mul w x", "b = Sigmoid a", "y = Mul b x"});
  vector.initializer("w", Tensor({5}, {1.0f, 2.0f, 3.0f, 4.0f, 5.0f}));
  optimized(vector, {"swish"});
  EXPECT_TRUE(last_rewrites().empty());
}

TEST(HardSwish, FromClipOrHardSigmoid) {
  ModelBuilder clipped = formula({"a = Add x 3", "b = Clip a 0 6", "c = Mul x b", "y = Div c 6"}),
               early = formula({"a = Add x 3", "b = Clip a 0 6", "c = Div b 6", "y = Mul x c"}),
               sigmoid = formula({"a = Add x 3", "b = Clip a 0 6", "y = Div b 6"});
  EXPECT_LT(change_by_extended(clipped), 1e-6);
  EXPECT_LT(change_by_extended(early), 1e-6);
  EXPECT_LT(change_by_extended(sigmoid), 1e-6);
  EXPECT_EQ(optimized(clipped, {"hard-swish"}), "y = HardSwish(x)\n");
  EXPECT_EQ(optimized(early, {"hard-swish"}), "y = HardSwish(x)\n");
  EXPECT_EQ(optimized(sigmoid, {"hard-swish"}), "y = HardSigmoid(x) {alpha=0.16666667, beta=0.5}\n");
  ModelBuilder wrong = formula({"a = Add x 3", "b = Clip a 0 5", "c = Mul x b", "y = Div c 6"});
  optimized(wrong, {"hard-swish"});
  EXPECT_TRUE(last_rewrites().empty());
  ModelBuilder steep = formula({"a = HardSigmoid x", "y = Mul x a"});
  optimized(steep, {"hard-swish"});
  EXPECT_TRUE(last_rewrites().empty());
}

TEST(Mish, OfSoftplus) {
  ModelBuilder b = formula({"a = Softplus x", "b = Tanh a", "y = Mul x b"});
  EXPECT_LT(change_by_extended(b), 1e-6);
  EXPECT_EQ(optimized(b, {"mish"}), "y = Mish(x)\n");
  ModelBuilder other = formula({"a = Softplus x", "b = Tanh a", "y = Mul a b"});
  optimized(other, {"mish"});
  EXPECT_TRUE(last_rewrites().empty());
}

}  // namespace
}  // namespace tenon

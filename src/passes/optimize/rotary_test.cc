#include <gtest/gtest.h>

#include "pass_test.h"

namespace tenon {
namespace {

const Dim batch = Dim::symbol("batch"), sequence = Dim::symbol("sequence");

struct Form {
  Dim position_batch = batch;
  bool twice = true;           // angles come twice
  bool cosine_first = false;   // cos * x
  bool splits = false;         // Split rather than two Slices
  float scaling = 1;           // of cosines
  int64_t middle = 2;          // where x is cut
  bool negates_first = false;  // [x2, -x1]
};

ModelBuilder rotary(const Form& form) {
  ModelBuilder b;
  b.input("x", ElementType::float32, SymbolicShape{batch, 3, sequence, 4});
  b.input("angles", ElementType::float32, SymbolicShape{form.position_batch, sequence, 2});
  b.input("others", ElementType::float32, SymbolicShape{form.position_batch, sequence, 2});
  auto list = [&](const char* name, int64_t number) { b.initializer(name, Tensor({1}, {number})); };
  list("begin", 0), list("middle", form.middle), list("end", INT64_MAX), list("last", 3), list("heads", 1);
  b.initializer("scaling", Tensor(Shape{}, {form.scaling}));
  b.node("Concat", {"angles", form.twice ? "angles" : "others"}, {"twice"}).set_attribute({"axis", int64_t{-1}});
  b.node("Cos", {"twice"}, {"cosines"});
  b.node("Mul", {"cosines", "scaling"}, {"scaled"});
  b.node("Sin", {"twice"}, {"sines"});
  b.node("Unsqueeze", {"scaled", "heads"}, {"cos"});
  b.node("Unsqueeze", {"sines", "heads"}, {"sin"});
  b.node("Mul", form.cosine_first ? std::vector<std::string>{"cos", "x"} : std::vector<std::string>{"x", "cos"},
         {"straight"});
  if (form.splits) {
    b.node("Split", {"x"}, {"low", "high"}).set_attribute({"axis", int64_t{-1}});
    b.graph().nodes().back().set_attribute({"num_outputs", int64_t{2}});
  } else {
    b.node("Slice", {"x", "begin", "middle", "last"}, {"low"});
    b.node("Slice", {"x", "middle", "end", "last", "heads"}, {"high"});
  }
  b.node("Neg", {form.negates_first ? "low" : "high"}, {"negative"});
  b.node(
       "Concat",
       form.negates_first ? std::vector<std::string>{"high", "negative"} : std::vector<std::string>{"negative", "low"},
       {"turned"})
      .set_attribute({"axis", int64_t{-1}});
  b.node("Mul", {"turned", "sin"}, {"across"});
  b.node("Add", {"straight", "across"}, {"y"});
  b.output("y");
  return b;
}

std::string last_line(const std::string& text) {
  const size_t end = text.find_last_of('\n', text.size() - 2);
  return text.substr(end + 1, text.size() - end - 2);
}

const std::vector<std::string> passes = {"rotary", "no-op"};

TEST(Rotary, InEveryForm) {
  for (const Form& form : {Form{}, Form{.cosine_first = true}, Form{.splits = true}, Form{.scaling = 1.5f}}) {
    ModelBuilder b = rotary(form);
    EXPECT_LT(change_by_extended(b), 1e-5);
    const std::string text = optimized(b, passes);
    EXPECT_EQ(last_line(text).substr(0, 23), "y = RotaryEmbedding(x, ") << text;
    EXPECT_EQ(text.find("Concat"), std::string::npos) << text;
    EXPECT_EQ(text.find("Mul(") != std::string::npos, form.scaling != 1) << text;
  }
}

TEST(Rotary, PositionsOfOneForAll) {
  ModelBuilder b = rotary({.position_batch = 1});
  EXPECT_LT(change_by_extended(b), 1e-5);
  const std::string text = optimized(b, passes);
  EXPECT_EQ(last_line(text).substr(0, 23), "y = RotaryEmbedding(x, ") << text;
  EXPECT_NE(text.find("Expand"), std::string::npos) << text;
}

TEST(Rotary, NotWhenSomethingElseIsMeant) {
  auto unchanged = [](ModelBuilder b, const std::vector<std::string>& keep = {}) {
    optimized(b, {"rotary"}, keep);
    return last_rewrites().empty();
  };
  EXPECT_TRUE(unchanged(rotary({.twice = false})));
  EXPECT_TRUE(unchanged(rotary({.middle = 1})));
  EXPECT_TRUE(unchanged(rotary({.middle = 3})));
  EXPECT_TRUE(unchanged(rotary({.negates_first = true})));
  EXPECT_TRUE(unchanged(rotary({.position_batch = Dim::symbol("other")})));
  EXPECT_TRUE(unchanged(rotary({}), {"turned"}));
}

}  // namespace
}  // namespace tenon

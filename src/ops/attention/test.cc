#include <cmath>

#include "model_builder.h"
#include "op_test.h"

namespace tenon {
namespace {

// Two queries and two keys of one head; a scale of 0 weighs all keys alike.
OpTest attention() {
  OpTest test("Attention");
  test.attribute("scale", 0.0f)
      .input<float>({1, 1, 2, 1}, {1, 2})
      .input<float>({1, 1, 2, 1}, {1, 2})
      .input<float>({1, 1, 2, 1}, {10, 20});
  return test;
}

TEST(Attention, Masks) {
  attention().expect<float>({1, 1, 2, 1}, {15, 15}).run();
  attention().attribute("is_causal", 1).expect<float>({1, 1, 2, 1}, {10, 15}).run();
  attention().attribute("left_window_size", 0).expect<float>({1, 1, 2, 1}, {15, 20}).run();
  attention().input(Tensor(Shape{2, 2}, {true, false, false, false})).expect<float>({1, 1, 2, 1}, {10, 0}).run();
  attention().input<float>({1, 1}, {3}).expect<float>({1, 1, 2, 1}, {15, 15}).run();
  attention().no_input().no_input().no_input().input<int64_t>({1}, {1}).expect<float>({1, 1, 2, 1}, {10, 10}).run();
}

TEST(Attention, PastAndHeads) {
  attention()
      .attribute("q_num_heads", 1)
      .attribute("kv_num_heads", 1)
      .attribute("is_causal", 1)
      .expect<float>({1, 1, 2, 1}, {10, 15})
      .run();
  OpTest("Attention")
      .attribute("scale", 0.0f)
      .attribute("q_num_heads", 2)
      .attribute("kv_num_heads", 1)
      .input<double>({1, 1, 2}, {1, 2})
      .input<double>({1, 1, 1}, {1})
      .input<double>({1, 1, 1}, {10})
      .no_input()
      .input<double>({1, 1, 1, 1}, {5})
      .input<double>({1, 1, 1, 1}, {30})
      .expect<double>({1, 1, 2}, {20, 20})
      .expect<double>({1, 1, 2, 1}, {5, 1})
      .expect<double>({1, 1, 2, 1}, {30, 10})
      .run();
}

TEST(PackedAttention, IsAttentionOfItsParts) {
  // Two heads of one element: queries, keys and values of a row are 2, 2 and 2 numbers.
  auto packed = [] {
    return std::move(OpTest("PackedAttention", 1, "tenon")
                         .attribute("num_heads", 2)
                         .attribute("scale", 0.0f)
                         .input<float>({1, 2, 6}, {1, 2, 3, 4, 10, 30, 5, 6, 7, 8, 20, 50}));
  };
  packed().expect<float>({1, 2, 2}, {15, 40, 15, 40}).run();
  packed().attribute("is_causal", 1).expect<float>({1, 2, 2}, {10, 30, 15, 40}).run();
  packed().input(Tensor(Shape{2, 2}, {false, true, true, false})).expect<float>({1, 2, 2}, {20, 50, 10, 30}).run();
  const std::string text = packed().attribute("num_heads", 4).error();
  EXPECT_EQ(text.substr(0, text.find('\n')),
            "shape-mismatch in tenon.PackedAttention 'tested' (node 0): 6 elements cannot be divided among 12 heads");
}

TEST(Attention, Errors) {
  std::string text = OpTest("Attention")
                         .input<float>({1, 3, 1, 1}, {1, 2, 3})
                         .input<float>({1, 2, 1, 1}, {1, 2})
                         .input<float>({1, 2, 1, 1}, {1, 2})
                         .error();
  EXPECT_EQ(text.substr(0, text.find('\n')),
            "shape-mismatch in Attention 'tested' (node 0): 3 query heads cannot be shared by 2 key and value heads");
}

Tensor wave(Shape shape, float step) {
  Tensor tensor(ElementType::float32, shape);
  float at = 0;
  for (float& item : tensor.mutable_data<float>()) item = std::sin(at += step);
  return tensor;
}

// True where `step` waves are above zero.
Tensor holes(Shape shape, float step) {
  Tensor waves = wave(shape, step), tensor(ElementType::boolean, shape);
  for (size_t i = 0; i < waves.data<float>().size(); ++i) tensor.mutable_data<bool>()[i] = waves.data<float>()[i] > 0;
  return tensor;
}

// More queries and keys than one block has, against the decomposition.
TEST(Attention, LongSequences) {
  constexpr int64_t queries = 150;
  struct Case {
    const char* what;
    Shape mask = {};  // of rank 0: none
    bool is_boolean = false, causal = false;
    float cap = 0;
    int64_t left = -1, right = -1;
  };
  for (int64_t keys : {200, 1100}) {
    const std::vector<Case> cases = {{.what = "plain"},
                                     {.what = "causal", .causal = true},
                                     {.what = "mask", .mask = {queries, keys}},
                                     {.what = "mask of fewer keys", .mask = {4, queries, keys - 30}},
                                     {.what = "mask of keys", .mask = {1, keys}},
                                     {.what = "booleans", .mask = {1, 1, queries, keys}, .is_boolean = true},
                                     {.what = "booleans of keys", .mask = {1, 1, 1, keys}, .is_boolean = true},
                                     {.what = "booleans of queries", .mask = {queries, 1}, .is_boolean = true},
                                     {.what = "cap", .cap = 0.5f},
                                     {.what = "window", .left = 40, .right = 7},
                                     {.what = "causal mask", .mask = {queries, keys}, .causal = true}};
    for (const Case& c : cases) {
      ModelBuilder b;
      b.input("q", ElementType::float32).input("k", ElementType::float32).input("v", ElementType::float32);
      const bool masked = c.mask.rank() > 0;
      if (masked) b.input("mask", c.is_boolean ? ElementType::boolean : ElementType::float32);
      ir::Node& node = b.node("Attention", {"q", "k", "v", masked ? "mask" : ""}, {"y"});
      node.set_attribute({"is_causal", int64_t{c.causal}});
      node.set_attribute({"softcap", c.cap});
      node.set_attribute({"left_window_size", c.left});
      node.set_attribute({"right_window_size", c.right});
      b.output("y");
      SessionOptions small;
      small.decompose = {"Attention"};
      small.level = OptimizationLevel::none;
      NamedValues inputs;
      inputs.emplace("q", wave({1, 4, queries, 8}, 0.7f));
      inputs.emplace("k", wave({1, 2, keys, 8}, 1.3f));
      inputs.emplace("v", wave({1, 2, keys, 5}, 0.9f));
      if (masked) inputs.emplace("mask", c.is_boolean ? holes(c.mask, 0.01f) : wave(c.mask, 0.1f));
      expect_near(b.session().run(inputs).at("y"), b.session(small).run(inputs).at("y"), 0, 1e-5, c.what);
    }
  }
}

TEST(Attention, ScoresExceedMemory) {
  Tensor x(ElementType::float32, Shape{1, 1, 1 << 20, 1});
  ModelBuilder b;
  b.input("x", ElementType::float32);
  b.node("Attention", {"x", "x", "x"}, {"y", "", "", "scores"});
  b.output("scores");
  Session session = b.session();
  std::string error = error_of([&] { session.run({{"x", x}}); });
  EXPECT_TRUE(error.starts_with("out-of-memory")) << error;
}

}  // namespace
}  // namespace tenon

#include <gtest/gtest.h>

#include "pass_test.h"

namespace tenon {
namespace {

const Dim batch = Dim::symbol("batch"), queries = Dim::symbol("queries"), keys = Dim::symbol("keys");

// Cached and new keys and values, joined and given out, and a mask for all of them.
ModelBuilder with_cache() {
  const Dim past = Dim::symbol("past");
  ModelBuilder b;
  b.input("q", ElementType::float32, SymbolicShape{batch, 4, queries, 8});
  for (const char* name : {"k", "v"}) b.input(name, ElementType::float32, SymbolicShape{batch, 2, keys, 8});
  for (const char* name : {"past.k", "past.v"}) b.input(name, ElementType::float32, SymbolicShape{batch, 2, past, 8});
  b.input("mask", ElementType::float32, SymbolicShape{queries, past + keys});
  b.node("Concat", {"past.k", "k"}, {"all.k"}).set_attribute({"axis", int64_t{2}});
  b.node("Concat", {"past.v", "v"}, {"all.v"}).set_attribute({"axis", int64_t{-2}});
  return b;
}

ir::Node& add_attention(ModelBuilder& b) {
  ir::Node& node = b.node("Attention", {"q", "all.k", "all.v", "mask"}, {"y"});
  node.set_attribute({"scale", 0.5f});
  b.output("y");
  return node;
}

TEST(AttentionCache, AttentionJoinsPastAndNew) {
  ModelBuilder b = with_cache();
  add_attention(b);
  b.output("all.k");
  EXPECT_EQ(change_by_extended(b), 0);
  EXPECT_EQ(optimized(b, {"attention-cache"}),
            "y, all.k, all.v = Attention(q, k, v, mask, past.k, past.v) {scale=0.5}\n");
}

TEST(AttentionCache, NotWhenOthersReadItOrThePastCounts) {
  auto unchanged = [](ModelBuilder& b) {
    optimized(b, {"attention-cache"});
    return last_rewrites().empty();
  };
  ModelBuilder used = with_cache(), causal = with_cache(), one = with_cache();
  add_attention(used);
  used.node("Relu", {"all.k"}, {"z"});
  used.output("z");
  EXPECT_TRUE(unchanged(used));
  add_attention(causal).set_attribute({"is_causal", int64_t{1}});
  EXPECT_TRUE(unchanged(causal));
  one.node("Attention", {"q", "all.k", "all.k", "mask"}, {"y"}).set_attribute({"scale", 0.5f});
  one.output("y");
  EXPECT_TRUE(unchanged(one));
}

}  // namespace
}  // namespace tenon

#include "tools/report/folding.h"

#include <gtest/gtest.h>

namespace tenon::tools {
namespace {

// "(encoder: a b (x: c))"
std::string text_of(const Folded& folded, std::span<const FoldItem> items) {
  if (folded.children.empty()) return items[static_cast<size_t>(folded.item)].op;
  std::string text = "(" + folded.label + ":";
  for (const Folded& child : folded.children) text += " " + text_of(child, items);
  return text + ")";
}

// Nodes in a chain, by name: the operator is what follows the last slash.
std::vector<FoldItem> chain(const std::vector<std::string>& names) {
  std::vector<FoldItem> items;
  for (const std::string& name : names) {
    FoldItem item{name.substr(name.rfind('/') + 1), scopes_of(name), {}, -1, ""};
    if (!items.empty()) item.inputs = {static_cast<int>(items.size()) - 1};
    items.push_back(std::move(item));
  }
  return items;
}

size_t most_children(const Folded& folded) {
  size_t most = folded.children.size();
  for (const Folded& child : folded.children) most = std::max(most, most_children(child));
  return most;
}

size_t leaves(const Folded& folded) {
  if (folded.children.empty()) return folded.item >= 0 ? 1 : 0;
  size_t count = folded.kind == Folded::Kind::body ? 1 : 0;
  for (const Folded& child : folded.children) count += leaves(child);
  return count;
}

TEST(Folding, ScopesOfNames) {
  EXPECT_EQ(scopes_of("/encoder/layer.0/Add"), (std::vector<std::string>{"encoder", "layer.0"}));
  EXPECT_EQ(scopes_of("Add"), std::vector<std::string>{});
  EXPECT_EQ(scopes_of("a//b/"), (std::vector<std::string>{"a", "b"}));
}

TEST(Folding, ScopesBecomeBlocks) {
  const std::vector<FoldItem> items =
      chain({"/in/Cast", "/one/a/Add", "/one/Mul", "/one/Sub", "/two/x/Add", "/two/x/Mul", "/two/x/Sub", "Relu"});
  // Two nodes are no block, and one scope around another is one block.
  EXPECT_EQ(text_of(fold(items), items), "(: Cast (one: Add Mul Sub) (two: Add Mul Sub) Relu)");
}

TEST(Folding, AScopeAroundAllIsNoBlock) {
  const std::vector<FoldItem> items = chain({"/m/Add", "/m/Mul", "/m/Sub", "/m/Div"});
  EXPECT_EQ(text_of(fold(items), items), "(: Add Mul Sub Div)");
}

TEST(Folding, WhatRepeatsBecomesBlocks) {
  std::vector<std::string> names = {"Gather"};
  for (int i = 0; i < 3; ++i) names.insert(names.end(), {"MatMul", "Add", "Relu", "Softmax", "Mul"});
  names.emplace_back("Flatten");
  const std::vector<FoldItem> items = chain(names);
  EXPECT_EQ(text_of(fold(items), items),
            "(: Gather (block 1 of 3: MatMul Add Relu Softmax Mul) (block 2 of 3: MatMul Add Relu Softmax Mul) "
            "(block 3 of 3: MatMul Add Relu Softmax Mul) Flatten)");
}

TEST(Folding, ManyThatRepeatAreInOneBlock) {
  std::vector<std::string> names = {"Gather"};
  for (int i = 0; i < 40; ++i) names.insert(names.end(), {"MatMul", "Add", "Relu", "Mul"});
  names.emplace_back("Flatten");
  const std::vector<FoldItem> items = chain(names);
  const Folded folded = fold(items);
  ASSERT_EQ(folded.children.size(), 3u);
  EXPECT_EQ(folded.children[1].label, "40 alike blocks");
  EXPECT_LE(most_children(folded), 28u);
  EXPECT_EQ(leaves(folded), 162u);
}

TEST(Folding, OtherWiringIsNoRepeat) {
  std::vector<std::string> names;
  for (int i = 0; i < 4; ++i) names.insert(names.end(), {"MatMul", "Add", "Relu", "Mul"});
  std::vector<FoldItem> items = chain(names);
  items[7].inputs.push_back(4);  // only in the second
  items[15].inputs.push_back(13);
  for (const Folded& child : fold(items).children) EXPECT_NE(child.kind, Folded::Kind::repeat);
}

TEST(Folding, LongListsAreCut) {
  for (size_t count : {29, 100, 997, 5000}) {
    std::vector<std::string> names;
    // No stretch of this looks like the one before it.
    for (size_t i = 0; i < count; ++i) names.push_back("Op" + std::to_string(i));
    const std::vector<FoldItem> items = chain(names);
    const Folded folded = fold(items);
    EXPECT_LE(most_children(folded), 28u);
    EXPECT_EQ(leaves(folded), count);
  }
}

TEST(Folding, PartsAreCalledAfterWhatIsMostOfThem) {
  std::vector<std::string> names;
  for (int i = 0; i < 40; ++i) names.push_back("Op" + std::to_string(i));
  for (int i = 0; i < 26; ++i) names.push_back("/head/Op" + std::to_string(i));
  const Folded folded = fold(chain(names));
  EXPECT_EQ(folded.children[0].label, "part 1");
  EXPECT_EQ(folded.children.back().label, "head …");
}

TEST(Folding, BodiesAreBlocks) {
  std::vector<FoldItem> items = chain({"Add", "If", "Mul", "Sub", "Relu"});
  items[2].owner = items[3].owner = 1;
  items[2].body = "then_branch";
  items[3].body = "else_branch";
  const Folded folded = fold(items);
  EXPECT_EQ(leaves(folded), 5u);
  EXPECT_EQ(text_of(folded, items), "(: Add (If: (else_branch: Sub) (then_branch: Mul)) Relu)");
}

TEST(Folding, NothingIsFine) { EXPECT_TRUE(fold({}).children.empty()); }

}  // namespace
}  // namespace tenon::tools

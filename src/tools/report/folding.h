// Which nodes of a graph are shown as one block.
#pragma once

#include <span>
#include <string>
#include <vector>

namespace tenon::tools {

// A node, as far as folding is concerned; those that others read come before them.
struct FoldItem {
  std::string op;
  std::vector<std::string> scopes;  // of its name, outermost first
  std::vector<int> inputs;          // items that it reads
  int owner = -1;                   // the item whose body it is in
  std::string body;                 // which of its bodies
};

// "/encoder/layer.0/Add" is in the scopes "encoder" and "layer.0".
std::vector<std::string> scopes_of(const std::string& name);

// A node, or a block of them.
struct Folded {
  enum class Kind : unsigned char {
    node,
    scope,   // nodes whose names have a scope in common
    repeat,  // one of several stretches that look the same, one after the other
    part,    // a stretch of a long list
    body,    // what a node of control flow runs
  };
  Kind kind = Kind::node;
  std::string label;
  int item = -1;  // the node, or that whose body it is
  std::vector<Folded> children;
};

// Blocks in blocks, so that no block has more children than fit on a screen: by scopes, then by what repeats, then by
// length. The result is the outermost block.
Folded fold(std::span<const FoldItem> items);

}  // namespace tenon::tools

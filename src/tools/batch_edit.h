#pragma once

#include <string>

#include "tools/batch_rules.h"

namespace tenon::tools {

// Where the new size is to be read: an axis of an input.
struct SizeSource {
  ir::Graph& graph;
  const std::string& input;
  size_t axis;
};

// Changes an input of a node.
void apply_edit(const BatchEdit& edit, ir::Node& node, const SizeSource& source);

}  // namespace tenon::tools

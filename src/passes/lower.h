#pragma once

#include <functional>
#include <string>
#include <vector>

#include "ir/graph.h"

namespace tenon::passes {

// A node that has no expression in the opsets that are asked for.
struct Blocker {
  std::string node, op_type, reason;
};

struct LowerOptions {
  // Whether operators that are newer than the opset become calls of functions, where the model's IR version has any.
  // Otherwise their decompositions are written in place.
  bool as_functions = true;
  // Called when all nodes are of operators that the opset has, still in their newest form.
  std::function<void()> simplify = {};
};

// The inverse of lift_to_newest_opset: writes every node of the main graph as the opsets that the model imports have
// it. An operator that is newer than that is written as its decomposition. Types must be inferred. Returns every node
// that has no expression there, and why: the model is then of no use.
std::vector<Blocker> lower_nodes(ir::Model& model, const LowerOptions& options);

// "2 nodes have no expression …", one a line.
std::string to_text(const std::vector<Blocker>& blockers);

// Gives values and nodes that were added plain names, each its own, so that the model can be written and read again.
void make_names_plain(ir::Model& model);

// The same for a model that passes have changed, so that it can be saved: names that they made up are made plain, and
// what nothing reads goes. Throws ErrorCode::unsupported with every node that has no expression.
void lower_to_imported_opsets(ir::Model& model);

}  // namespace tenon::passes

#pragma once

#include <functional>
#include <string>
#include <vector>

#include "ir/graph.h"
#include "passes/fit_opset.h"

namespace tenon::passes {

struct LowerOptions {
  // Whether operators that are newer than the opset become calls of functions, where the model's IR version has any.
  // Otherwise their decompositions are written in place.
  bool as_functions = true;
  // Called after nodes were written in others, still in their newest form; types must be inferred when it returns.
  std::function<void()> simplify = {};
};

// The inverse of lift_to_newest_opset: writes every node of the main graph as the opsets that the model imports have
// it, after fit_opsets. Types must be inferred. Returns every node that has no expression there, and why: the model is
// then of no use.
std::vector<Blocker> lower_nodes(ir::Model& model, const LowerOptions& options);

// "2 nodes have no expression …", one a line.
std::string to_text(const std::vector<Blocker>& blockers);

// Gives values and nodes that were added plain names, each its own, so that the model can be written and read again.
void make_names_plain(ir::Model& model);

// The same for a model that passes have changed, so that it can be saved: names that they made up are made plain, and
// what nothing reads goes. Throws ErrorCode::unsupported with every node that has no expression.
void lower_to_imported_opsets(ir::Model& model);

}  // namespace tenon::passes

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

// Writes the nodes of a graph and its subgraphs, all of the newest versions, in such nodes of the newest versions as
// have an expression in the opsets: operators that these do not have as decompositions, what older versions cannot say
// in other operators (ops/older_forms.h), types that they do not take in wider ones. Types must be inferred, and are in
// the end. Nodes for which `leave` holds stay as they are; `simplify`, where there is one, is called after nodes were
// added, which may make constant what an older version takes only so. Returns what cannot be written.
std::vector<Blocker> fit_opsets(ir::Graph& graph, const ir::OpsetImports& opsets,
                                const std::function<bool(const ir::Node&)>& leave,
                                const std::function<void()>& simplify);

}  // namespace tenon::passes

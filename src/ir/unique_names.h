#pragma once

#include "ir/graph.h"

namespace tenon::ir {

// Gives each value that has the name of another one, in its graph or in one around it, a name of its own, so that the
// model can be written and read again. Names that passes made give way to those of the file; inputs and outputs of a
// graph keep theirs.
void make_names_unique(Model& model);

// The same for the names of nodes, which some runtimes want to differ within a graph. Of nodes with one name, the last
// keeps it: where an operator became several, that is the one that makes its output.
void make_node_names_unique(Model& model);

}  // namespace tenon::ir

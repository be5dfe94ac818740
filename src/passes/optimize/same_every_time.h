#pragma once

#include "ir/graph.h"

namespace tenon::passes {

// Whether a node gives the same outputs for the same inputs, and has no subgraphs, which would have to be compared too.
bool is_same_every_time(const ir::Node& node);

}  // namespace tenon::passes

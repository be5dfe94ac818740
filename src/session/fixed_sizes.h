#pragma once

#include "ir/graph.h"
#include "tenon/session.h"

namespace tenon {

// Puts the sizes of SessionOptions into the declared types of all values. Returns what the model does not have. Throws
// ErrorCode::invalid_argument for a negative size.
std::vector<std::string> fix_sizes(ir::Graph& graph, const SessionOptions& options);

}  // namespace tenon

#pragma once

#include "ir/graph.h"
#include "tenon/session.h"

namespace tenon {

// Puts the sizes of SessionOptions into the declared types of all values. Returns what the model does not have. Throws
// ErrorCode::invalid_argument for a negative size.
std::vector<std::string> fix_sizes(ir::Graph& graph, const SessionOptions& options);

// Makes every size that is no number in a declared type unknown.
void forget_size_names(ir::Graph& graph);

}  // namespace tenon

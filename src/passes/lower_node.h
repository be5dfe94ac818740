#pragma once

#include <string>

#include "ir/graph.h"
#include "ops/operator.h"

namespace tenon::passes {

// The version of its operator that a node of a model with `opset` is written in. Where the operator is newer than that
// and has an inverse that makes it an older one, `opset` itself; 0 where it is newer and has none. A version that ONNX
// never had, as other runtimes do, counts where the node was of it in the file.
int version_to_write(const ops::Operator& op, const ir::Node& node, int64_t opset);

// Whether the file that the node is from has it in this version of its operator.
bool was_of_version(const ops::Operator& op, const ir::Node& node, int version);

// Brings a node of the newest version to the meaning of `version`, with its operator's inverses. Else says why it
// cannot; the node is then not to be used any more.
std::string lower_node(ir::Node& node, const ops::Operator& op, int version);

// Whether lower_node could: "" or the reason. Changes nothing.
std::string why_not_lower(const ir::Node& node, const ops::Operator& op, int version);

}  // namespace tenon::passes

#pragma once

#include <string>
#include <unordered_map>
#include <vector>

#include "ir/graph.h"
#include "ops/inference.h"

namespace tenon::passes {

struct InferenceResult {
  // What is known about each value, subgraphs included.
  std::unordered_map<const ir::Value*, ops::Fact> facts;
  // Declared shapes that the nodes contradict, and the like.
  std::vector<std::string> notes;
};

// Checks each node against its operator's schema and infers types and symbolic shapes of every value, which it also
// writes to Value::type. Integer arithmetic on shapes is followed. Nodes must be lifted and sorted.
InferenceResult infer_types(ir::Graph& graph);
// The same; when it throws, `result` has what was found before.
void infer_types(ir::Graph& graph, InferenceResult& result);

}  // namespace tenon::passes

#pragma once

#include <string>
#include <unordered_map>
#include <vector>

#include "ir/graph.h"
#include "ops/inference.h"
#include "tenon/error.h"

namespace tenon::passes {

struct InferenceResult {
  // What is known about each value, subgraphs included.
  std::unordered_map<const ir::Value*, ops::Fact> facts;
  // Declared shapes that the nodes contradict, and the like.
  std::vector<std::string> notes;
  // Values whose declared shape their node contradicts.
  struct ShapeConflict {
    const ir::Value* value;
    SymbolicShape declared, inferred;
  };
  std::vector<ShapeConflict> shape_conflicts;
  // With Problems::collected: nodes that break their operator's rules. What they make has its declared type.
  struct Problem {
    const ir::Node* node;
    Error error;
  };
  std::vector<Problem> problems;
};

// What becomes of a node that breaks its operator's rules: an error, or an entry of the result, and inference goes on.
enum class Problems : uint8_t { thrown, collected };

// Checks each node against its operator's schema and infers types and symbolic shapes of every value, which it also
// writes to Value::type. Integer arithmetic on shapes is followed. Nodes must be lifted and sorted.
InferenceResult infer_types(ir::Graph& graph, Problems problems = Problems::thrown);
// The same; when it throws, `result` has what was found before.
void infer_types(ir::Graph& graph, InferenceResult& result, Problems problems = Problems::thrown);

}  // namespace tenon::passes

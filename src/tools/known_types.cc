#include "tools/known_types.h"

#include "ir/verify.h"
#include "passes/constants.h"
#include "passes/infer.h"
#include "passes/lift.h"
#include "tenon/error.h"

namespace tenon::tools {

std::unique_ptr<ir::Model> lifted_copy(const ir::Model& model) {
  std::unique_ptr<ir::Model> copy = model.clone();
  passes::lift_to_newest_opset(*copy);
  passes::inline_functions(*copy);
  passes::constants_to_initializers(*copy->graph);
  ir::verify_and_sort(*copy->graph);
  return copy;
}

KnownTypes known_types(const ir::Model& model) {
  KnownTypes known;
  const auto take = [&](const ir::Graph& graph) {
    for (const ir::Value& value : graph.values()) {
      if (value.type.known()) known.types[value.name] = value.type;
    }
  };
  take(*model.graph);
  for (size_t i = 0; i < model.graph->outputs().size(); ++i) {
    const ir::Type& declared = model.graph->declared_output_types()[i];
    if (declared.known()) known.types[model.graph->outputs()[i]->name] = declared;
  }
  try {
    const std::unique_ptr<ir::Model> copy = lifted_copy(model);
    passes::infer_types(*copy->graph);
    take(*copy->graph);
  } catch (const Error& error) {
    known.problem = error.what();
  }
  return known;
}

}  // namespace tenon::tools

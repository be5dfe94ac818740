#include "tools/check/subject.h"

#include "passes/constants.h"

namespace tenon::tools {
namespace {

using GraphVisit = std::function<void(const ir::Graph&, const ir::OpsetImports&)>;

void visit_graphs(const ir::Graph& graph, const ir::OpsetImports& imports, const GraphVisit& visit) {
  visit(graph, imports);
  for (const ir::Node& node : graph.nodes()) {
    for (const ir::Attribute& attribute : node.attributes) {
      attribute.for_each_graph([&](const ir::Graph& subgraph) { visit_graphs(subgraph, imports, visit); });
    }
  }
}

// Tensors without content become inputs, so that nobody reads them. False if one is in an attribute, where it cannot.
bool make_missing_inputs(ir::Graph& graph) {
  std::vector<ir::Value*> missing;
  for (ir::Value* value : graph.initializers()) {
    if (value->sparse_constant() && !has_content(value->sparse_constant()->values->tensor)) return false;
    if (value->constant() && !has_content(value->constant()->tensor)) missing.push_back(value);
  }
  for (ir::Value* value : missing) {
    const Tensor tensor = value->constant()->tensor;
    const bool is_input = value->is_graph_input();
    graph.remove_initializer(*value);
    value->type = ir::Type::tensor(tensor.type(), symbolic(tensor.shape()));
    if (!is_input) graph.add_input(*value);
  }
  for (const ir::Node& node : graph.nodes()) {
    for (const ir::Attribute& attribute : node.attributes) {
      bool fine = true;
      if (auto* constant = std::get_if<ir::ConstantPtr>(&attribute.value)) fine = has_content((*constant)->tensor);
      attribute.for_each_graph([&](ir::Graph& subgraph) { fine = make_missing_inputs(subgraph) && fine; });
      if (!fine) return false;
    }
  }
  return true;
}

// Nodes of graphs with a cycle stay in the order of the file.
void sort_if_possible(ir::Graph& graph) {
  try {
    graph.sort_topologically();
  } catch (const Error& error) {
    if (error.code() != ErrorCode::cyclic_graph) throw;
  }
  for (const ir::Node& node : graph.nodes()) {
    for (const ir::Attribute& attribute : node.attributes)
      attribute.for_each_graph([](ir::Graph& subgraph) { sort_if_possible(subgraph); });
  }
}

const ir::Type unknown_type{};

std::unordered_map<std::string_view, const ir::Type*> types_by_name(const ir::Model& model) {
  std::unordered_map<std::string_view, const ir::Type*> types;
  for_each_graph(model, [&](const ir::Graph& graph, const ir::OpsetImports&) {
    for (const ir::Value& value : graph.values()) {
      auto [at, added] = types.emplace(value.name, &value.type);
      if (!added && at->second->name() != value.type.name()) at->second = &unknown_type;
    }
  });
  return types;
}

bool is_in_main_graph(const ir::Value& value, const ir::Model& model) {
  const ir::Graph* graph = &value.graph();
  while (graph->owner()) graph = &graph->owner()->graph();
  return graph == model.graph.get();
}

}  // namespace

const ir::Type& Subject::type_of(const ir::Value& value) const {
  auto found = is_in_main_graph(value, model) ? types.find(value.name) : types.end();
  return found != types.end() && found->second->known() ? *found->second : value.type;
}

void for_each_graph(const ir::Model& model, const GraphVisit& visit) {
  visit_graphs(*model.graph, model.opset_imports, visit);
  for (const auto& function : model.functions) visit_graphs(*function->body, function->opset_imports, visit);
}

void for_each_node(const ir::Model& model, const std::function<void(const ir::Node&, const ir::OpsetImports&)>& visit) {
  for_each_graph(model, [&](const ir::Graph& graph, const ir::OpsetImports& imports) {
    for (const ir::Node& node : graph.nodes()) visit(node, imports);
  });
}

void for_each_constant(const ir::Model& model,
                       const std::function<void(const ir::Constant&, const ir::Node* holder)>& visit) {
  for_each_graph(model, [&](const ir::Graph& graph, const ir::OpsetImports&) {
    for (const ir::Value* value : graph.initializers()) {
      if (value->constant()) visit(*value->constant(), nullptr);
      if (value->sparse_constant()) visit(*value->sparse_constant()->values, nullptr);
    }
    for (const ir::Node& node : graph.nodes()) {
      for (const ir::Attribute& attribute : node.attributes) {
        if (auto* constant = std::get_if<ir::ConstantPtr>(&attribute.value)) visit(**constant, &node);
      }
    }
  });
}

Subject understand(const ir::Model& model, std::vector<onnx::ExternalProblem> external_problems,
                   ops::CustomOperatorList custom) {
  Subject subject{model, std::move(external_problems), std::move(custom), nullptr, {}, {}, std::nullopt, {}};
  std::unique_ptr<ir::Model> copy = model.clone();
  if (!make_missing_inputs(*copy->graph)) return subject;
  try {
    passes::lift_to_newest_opset(*copy, subject.custom, &subject.lift_problems);
    passes::inline_functions(*copy);
    passes::constants_to_initializers(*copy->graph);
    sort_if_possible(*copy->graph);
    subject.inference = passes::infer_types(*copy->graph, passes::Problems::collected);
    subject.types = types_by_name(*copy);
    subject.understood = std::move(copy);
  } catch (const Error& error) {
    subject.failure = error;
  }
  return subject;
}

}  // namespace tenon::tools

#include "base/fail.h"
#include "ir/append_nodes.h"

namespace tenon::ir {

Attribute clone(const Attribute& attribute, std::map<const Value*, Value*>& values) {
  Attribute copy;
  copy.name = attribute.name;
  copy.kind = attribute.kind;
  copy.reference = attribute.reference;
  copy.doc_string = attribute.doc_string;
  copy.other_fields = attribute.other_fields;
  std::visit(
      [&](const auto& value) {
        using T = std::decay_t<decltype(value)>;
        if constexpr (std::is_same_v<T, std::unique_ptr<Graph>>) {
          copy.value = value->clone(&values);
        } else if constexpr (std::is_same_v<T, std::vector<std::unique_ptr<Graph>>>) {
          std::vector<std::unique_ptr<Graph>> graphs;
          for (const auto& graph : value) graphs.push_back(graph->clone(&values));
          copy.value = std::move(graphs);
        } else {
          copy.value = value;
        }
      },
      attribute.value);
  return copy;
}

namespace {

// A value that was not copied belongs to a graph outside of what is being copied and stays shared.
Value* mapped(const std::map<const Value*, Value*>& values, Value* value) {
  auto found = values.find(value);
  return found == values.end() ? value : found->second;
}

}  // namespace

void append_nodes(Graph& to, const Graph& from, std::map<const Value*, Value*>& values) {
  for (const Node& node : from.nodes()) {
    Node& twin = to.add_node(node.op_type, node.domain);
    twin.overload = node.overload;
    twin.name = node.name;
    twin.doc_string = node.doc_string;
    twin.metadata = node.metadata;
    twin.other_fields = node.other_fields;
    twin.origin = node.origin;
    twin.custom_operator = node.custom_operator;
    for (size_t i = 0; i < node.input_count(); ++i) twin.set_input(i, mapped(values, node.input(i)));
    for (Value* value : node.outputs()) twin.add_output(mapped(values, value));
    for (const Attribute& attribute : node.attributes) twin.attributes.push_back(clone(attribute, values));
    adopt_subgraphs(twin);
  }
}

std::unique_ptr<Graph> Graph::clone(std::map<const Value*, Value*>* outer) const {
  std::map<const Value*, Value*> own;
  std::map<const Value*, Value*>& map = outer ? *outer : own;
  auto copy = std::make_unique<Graph>();
  copy->name = name;
  copy->doc_string = doc_string;
  copy->metadata = metadata;
  copy->other_fields = other_fields;
  copy->quantization_annotations = quantization_annotations;
  copy->fresh_names_ = fresh_names_;
  for (const Value& value : values_) {
    Value& twin = copy->add_value(value.name);
    twin.type = value.type;
    twin.doc_string = value.doc_string;
    twin.metadata = value.metadata;
    twin.other_fields = value.other_fields;
    twin.value_info_position = value.value_info_position;
    twin.is_input_ = value.is_input_;
    twin.constant_ = value.constant_;
    twin.sparse_constant_ = value.sparse_constant_;
    map[&value] = &twin;
  }
  for (Value* value : inputs_) copy->inputs_.push_back(mapped(map, value));
  for (Value* value : initializers_) copy->initializers_.push_back(mapped(map, value));
  append_nodes(*copy, *this, map);
  for (size_t i = 0; i < outputs_.size(); ++i) copy->add_output(*mapped(map, outputs_[i]), output_types_[i]);
  return copy;
}

std::unique_ptr<Model> Model::clone() const {
  auto copy = std::make_unique<Model>();
  copy->ir_version = ir_version;
  copy->opset_imports = opset_imports;
  copy->producer_name = producer_name;
  copy->producer_version = producer_version;
  copy->domain = domain;
  copy->doc_string = doc_string;
  copy->model_version = model_version;
  copy->metadata = metadata;
  copy->other_fields = other_fields;
  copy->graph = graph->clone();
  for (const auto& function : functions) {
    auto twin = std::make_unique<Function>();
    twin->domain = function->domain;
    twin->name = function->name;
    twin->overload = function->overload;
    twin->doc_string = function->doc_string;
    twin->attribute_names = function->attribute_names;
    std::map<const Value*, Value*> none;
    for (const Attribute& attribute : function->attribute_defaults) {
      twin->attribute_defaults.push_back(ir::clone(attribute, none));
    }
    twin->opset_imports = function->opset_imports;
    twin->body = function->body->clone();
    twin->metadata = function->metadata;
    twin->other_fields = function->other_fields;
    copy->functions.push_back(std::move(twin));
  }
  return copy;
}

namespace {

void record(Graph& graph, const OpsetImports& opsets, const std::string& path) {
  int position = 0;
  for (Node& node : graph.nodes()) {
    auto origin = std::make_shared<Origin>();
    origin->op_type = node.op_type;
    origin->domain = node.domain;
    origin->name = node.name;
    origin->version = opsets.version(node.domain);
    origin->position = position++;
    origin->path = path;
    node.origin = std::move(origin);
    for (const Attribute& attribute : node.attributes) {
      attribute.for_each_graph(
          [&](Graph& subgraph) { record(subgraph, opsets, node.describe() + " > " + attribute.name); });
    }
  }
}

}  // namespace

void record_origins(Model& model) {
  record(*model.graph, model.opset_imports, {});
  for (auto& function : model.functions) {
    record(*function->body, function->opset_imports, "function " + function->name);
  }
}

}  // namespace tenon::ir

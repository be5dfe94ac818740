#include "base/fail.h"
#include "ir/copy_nodes.h"

namespace tenon::ir {

Attribute clone(const Attribute& attribute, Twins& twins) {
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
          copy.value = value->clone(&twins);
        } else if constexpr (std::is_same_v<T, std::vector<std::unique_ptr<Graph>>>) {
          std::vector<std::unique_ptr<Graph>> graphs;
          for (const auto& graph : value) graphs.push_back(graph->clone(&twins));
          copy.value = std::move(graphs);
        } else {
          copy.value = value;
        }
      },
      attribute.value);
  return copy;
}

Value* twin_of(const Twins& twins, Value* value) {
  auto found = twins.find(value);
  return found == twins.end() ? value : found->second;
}

void copy_node_without_outputs(const Node& node, Node& copy, Twins& twins) {
  copy.domain = node.domain;
  copy.overload = node.overload;
  copy.name = node.name;
  copy.doc_string = node.doc_string;
  copy.metadata = node.metadata;
  copy.other_fields = node.other_fields;
  copy.origin = node.origin;
  copy.custom_operator = node.custom_operator;
  for (size_t i = 0; i < node.input_count(); ++i) copy.set_input(i, twin_of(twins, node.input(i)));
  for (const Attribute& attribute : node.attributes) copy.attributes.push_back(clone(attribute, twins));
  adopt_subgraphs(copy);
}

void copy_node(const Node& node, Node& copy, Twins& twins) {
  for (Value* value : node.outputs()) copy.add_output(twin_of(twins, value));
  copy_node_without_outputs(node, copy, twins);
}

void append_nodes(Graph& to, const Graph& from, Twins& twins) {
  for (const Node& node : from.nodes()) copy_node(node, to.add_node(node.op_type, node.domain), twins);
}

std::unique_ptr<Graph> Graph::clone(Twins* outer) const {
  Twins own;
  Twins& twins = outer ? *outer : own;
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
    twins[&value] = &twin;
  }
  for (Value* value : inputs_) copy->inputs_.push_back(twin_of(twins, value));
  for (Value* value : initializers_) copy->initializers_.push_back(twin_of(twins, value));
  append_nodes(*copy, *this, twins);
  for (size_t i = 0; i < outputs_.size(); ++i) copy->add_output(*twin_of(twins, outputs_[i]), output_types_[i]);
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
    Twins none;
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

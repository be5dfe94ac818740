#include "onnx/graph_reader.h"

#include <unordered_set>

#include "base/fail.h"
#include "onnx/string_pairs.h"

namespace tenon::onnx {
namespace {

constexpr int deepest_graph = 64;

}  // namespace

void read_opset(WireReader message, ir::OpsetImports& imports) {
  std::string domain;
  int64_t version = 0;
  while (message.next()) {
    if (message.field() == 1)
      domain = message.string();
    else if (message.field() == 2)
      version = message.int64();
    else
      message.skip();
  }
  imports.add(std::move(domain), version);
}

struct GraphReader::ValueInfo {
  std::string_view name;
  ir::Type type;
  std::string doc_string;
  ir::StringPairs metadata;
  std::string other_fields;

  void apply_to(ir::Value& value) {
    if (type.known()) value.type = type;
    if (!doc_string.empty()) value.doc_string = std::move(doc_string);
    if (!metadata.empty()) value.metadata = std::move(metadata);
    if (!other_fields.empty()) value.other_fields = std::move(other_fields);
  }
};

// A node whose names are not resolved yet.
struct GraphReader::PendingNode {
  std::vector<std::string_view> inputs, outputs;
  std::vector<WireReader> attributes;
  std::string_view op_type, domain, name;
  std::string overload, doc_string, other_fields;
  ir::StringPairs metadata;
  ir::Node* node = nullptr;
};

GraphReader::ValueInfo GraphReader::read_value_info(WireReader message) {
  ValueInfo info;
  while (message.next()) {
    switch (message.field()) {
      case 1:
        info.name = message.bytes();
        break;
      case 2:
        try {
          info.type = read_type(message.message());
        } catch (Error& error) {
          throw error.on_tensor(info.name);
        }
        break;
      case 3:
        info.doc_string = message.string();
        break;
      case 4:
        info.metadata.push_back(read_string_pair(message.message()));
        break;
      default:
        info.other_fields += message.skip();
    }
  }
  return info;
}

GraphReader::PendingNode GraphReader::read_node(WireReader message) {
  PendingNode node;
  while (message.next()) {
    switch (message.field()) {
      case 1:
        node.inputs.push_back(message.bytes());
        break;
      case 2:
        node.outputs.push_back(message.bytes());
        break;
      case 3:
        node.name = message.bytes();
        break;
      case 4:
        node.op_type = message.bytes();
        break;
      case 5:
        node.attributes.push_back(message.message());
        break;
      case 6:
        node.doc_string = message.string();
        break;
      case 7:
        node.domain = message.bytes();
        break;
      case 8:
        node.overload = message.string();
        break;
      case 9:
        node.metadata.push_back(read_string_pair(message.message()));
        break;
      default:
        node.other_fields += message.skip();
    }
  }
  return node;
}

void GraphReader::define_outputs(ir::Graph& graph, Scope& scope, PendingNode& pending) {
  ir::Node& node = graph.add_node(std::string(pending.op_type), std::string(pending.domain));
  pending.node = &node;
  node.name = pending.name;
  node.overload = std::move(pending.overload);
  node.doc_string = std::move(pending.doc_string);
  node.metadata = std::move(pending.metadata);
  node.other_fields = std::move(pending.other_fields);
  for (std::string_view name : pending.outputs) {
    if (name.empty()) {
      node.add_output(nullptr);
      continue;
    }
    ir::Value& value = graph.add_value(std::string(name));
    scope.names.try_emplace(name, &value);
    node.add_output(&value);
  }
}

namespace {

ir::Value* resolve(ir::Graph& graph, Scope& scope, std::string_view name) {
  if (name.empty()) return nullptr;
  if (ir::Value* value = scope.find(name)) return value;
  ir::Value& undefined = graph.add_value(std::string(name));
  scope.names.emplace(name, &undefined);
  return &undefined;
}

}  // namespace

void GraphReader::finish_node(ir::Graph& graph, Scope& scope, PendingNode& pending) {
  for (size_t i = 0; i < pending.inputs.size(); ++i)
    pending.node->set_input(i, resolve(graph, scope, pending.inputs[i]));
  try {
    for (WireReader attribute : pending.attributes)
      pending.node->attributes.push_back(read_attribute(attribute, &scope));
  } catch (Error& error) {
    throw error.at_node(pending.node->describe());
  }
  adopt_subgraphs(*pending.node);
}

void GraphReader::apply_value_infos(ir::Graph& graph, Scope& scope, std::vector<ValueInfo>& infos) {
  int position = 0;
  for (ValueInfo& info : infos) {
    auto found = scope.names.find(info.name);
    // An entry for a name the graph does not have is kept as an undefined value, so that saving writes it again.
    ir::Value& value = found != scope.names.end() ? *found->second : graph.add_value(std::string(info.name));
    if (found == scope.names.end()) scope.names.emplace(info.name, &value);
    value.value_info_position = position++;
    if (!value.is_graph_input()) info.apply_to(value);
  }
}

std::unique_ptr<ir::Graph> GraphReader::read_graph(WireReader message, const Scope* outer) {
  if (depth_ >= deepest_graph) fail(ErrorCode::invalid_model, "subgraphs are nested more than {} deep", deepest_graph);
  struct Deeper {
    int& depth;
    explicit Deeper(int& d) : depth(d) { ++depth; }
    ~Deeper() { --depth; }
  } deeper(depth_);

  auto graph = std::make_unique<ir::Graph>();
  Scope scope;
  scope.outer = outer;
  std::vector<PendingNode> nodes;
  std::vector<ValueInfo> inputs, outputs, value_infos;
  std::vector<std::shared_ptr<ir::Constant>> initializers;
  std::vector<ir::SparseConstantPtr> sparse_initializers;
  while (message.next()) {
    switch (message.field()) {
      case 1:
        nodes.push_back(read_node(message.message()));
        break;
      case 2:
        graph->name = message.string();
        break;
      case 5:
        initializers.push_back(tensors_.read(message.message(), outer ? nullptr : &given_));
        break;
      case 10:
        graph->doc_string = message.string();
        break;
      case 11:
        inputs.push_back(read_value_info(message.message()));
        break;
      case 12:
        outputs.push_back(read_value_info(message.message()));
        break;
      case 13:
        value_infos.push_back(read_value_info(message.message()));
        break;
      case 14: {
        WireReader annotation = message.message();
        std::pair<std::string, ir::StringPairs> entry;
        while (annotation.next()) {
          if (annotation.field() == 1)
            entry.first = annotation.string();
          else if (annotation.field() == 2)
            entry.second.push_back(read_string_pair(annotation.message()));
          else
            annotation.skip();
        }
        graph->quantization_annotations.push_back(std::move(entry));
        break;
      }
      case 15:
        sparse_initializers.push_back(tensors_.read_sparse(message.message()));
        break;
      case 16:
        graph->metadata.push_back(read_string_pair(message.message()));
        break;
      default:
        graph->other_fields += message.skip();
    }
  }

  std::unordered_set<std::string_view> constants;
  if (initializers_are_constants && !outer) {
    for (const auto& constant : initializers) constants.insert(constant->name);
  }
  for (ValueInfo& info : inputs) {
    ir::Value& value = graph->add_value(std::string(info.name));
    scope.names.try_emplace(info.name, &value);
    if (!constants.contains(info.name)) graph->add_input(value);
    info.apply_to(value);
  }
  auto define_initializer = [&](std::string_view name) -> ir::Value& {
    auto found = scope.names.find(name);
    if (found != scope.names.end() && !found->second->is_initializer()) return *found->second;
    ir::Value& value = graph->add_value(std::string(name));
    scope.names.try_emplace(name, &value);
    return value;
  };
  for (auto& constant : initializers) {
    ir::Value& value = define_initializer(constant->name);
    if (!value.type.known()) value.type = ir::Type::tensor(constant->tensor.type(), symbolic(constant->tensor.shape()));
    graph->set_initializer(value, ir::ConstantPtr(std::move(constant)));
  }
  for (auto& sparse : sparse_initializers) {
    // The type of a sparse initializer is dense: it is only stored sparsely.
    ir::Value& value = define_initializer(sparse->values->name);
    if (!value.type.known()) value.type = ir::Type::tensor(sparse->values->tensor.type(), symbolic(sparse->shape));
    graph->set_initializer(value, std::move(sparse));
  }
  for (PendingNode& node : nodes) define_outputs(*graph, scope, node);
  for (PendingNode& node : nodes) finish_node(*graph, scope, node);
  apply_value_infos(*graph, scope, value_infos);
  for (ValueInfo& info : outputs) {
    ir::Value* value = resolve(*graph, scope, info.name);
    if (!value)
      fail(ErrorCode::invalid_model, "output {} of graph '{}' has no name", graph->outputs().size(), graph->name);
    graph->add_output(*value, info.type);
    if (&value->graph() == graph.get() && !value->is_graph_input()) info.apply_to(*value);
  }
  return graph;
}

std::unique_ptr<ir::Function> GraphReader::read_function(WireReader message) {
  auto function = std::make_unique<ir::Function>();
  std::vector<std::string_view> inputs, outputs;
  std::vector<PendingNode> nodes;
  std::vector<ValueInfo> value_infos;
  while (message.next()) {
    switch (message.field()) {
      case 1:
        function->name = message.string();
        break;
      case 4:
        inputs.push_back(message.bytes());
        break;
      case 5:
        outputs.push_back(message.bytes());
        break;
      case 6:
        function->attribute_names.push_back(message.string());
        break;
      case 7:
        nodes.push_back(read_node(message.message()));
        break;
      case 8:
        function->doc_string = message.string();
        break;
      case 9:
        read_opset(message.message(), function->opset_imports);
        break;
      case 10:
        function->domain = message.string();
        break;
      case 11:
        function->attribute_defaults.push_back(read_attribute(message.message(), nullptr));
        break;
      case 12:
        value_infos.push_back(read_value_info(message.message()));
        break;
      case 13:
        function->overload = message.string();
        break;
      case 14:
        function->metadata.push_back(read_string_pair(message.message()));
        break;
      default:
        function->other_fields += message.skip();
    }
  }
  function->body = std::make_unique<ir::Graph>();
  ir::Graph& body = *function->body;
  body.name = function->name;
  Scope scope;
  for (std::string_view name : inputs) {
    ir::Value& value = body.add_value(std::string(name));
    scope.names.try_emplace(name, &value);
    body.add_input(value);
  }
  for (PendingNode& node : nodes) define_outputs(body, scope, node);
  for (PendingNode& node : nodes) finish_node(body, scope, node);
  apply_value_infos(body, scope, value_infos);
  for (std::string_view name : outputs) {
    ir::Value* value = resolve(body, scope, name);
    if (!value) fail(ErrorCode::invalid_model, "an output of function '{}' has no name", function->name);
    body.add_output(*value);
  }
  return function;
}

ir::Attribute GraphReader::read_attribute(WireReader message, const Scope* scope) {
  using Kind = ir::AttributeKind;
  ir::Attribute attribute;
  std::optional<int> declared;
  std::optional<float> number;
  std::optional<int64_t> integer;
  std::optional<std::string> text;
  ir::ConstantPtr tensor;
  ir::SparseConstantPtr sparse;
  std::unique_ptr<ir::Graph> graph;
  std::optional<ir::Type> type;
  std::vector<float> floats;
  std::vector<int64_t> ints;
  std::vector<std::string> strings;
  std::vector<ir::ConstantPtr> tensors;
  std::vector<std::unique_ptr<ir::Graph>> graphs;
  std::vector<ir::SparseConstantPtr> sparses;
  std::vector<ir::Type> types;
  Kind seen = Kind::undefined;
  while (message.next()) {
    switch (message.field()) {
      case 1:
        attribute.name = message.string();
        break;
      case 2:
        number = message.float32();
        seen = Kind::float_;
        break;
      case 3:
        integer = message.int64();
        seen = Kind::int_;
        break;
      case 4:
        text = message.string();
        seen = Kind::string;
        break;
      case 5:
        tensor = tensors_.read(message.message());
        seen = Kind::tensor;
        break;
      case 6:
        if (graph) graph->detach();  // given twice: the last one counts
        graph = read_graph(message.message(), scope);
        seen = Kind::graph;
        break;
      case 7:
        message.append_floats(floats);
        seen = Kind::floats;
        break;
      case 8:
        message.append_varints(ints);
        seen = Kind::ints;
        break;
      case 9:
        strings.push_back(message.string());
        seen = Kind::strings;
        break;
      case 10:
        tensors.push_back(tensors_.read(message.message()));
        seen = Kind::tensors;
        break;
      case 11:
        graphs.push_back(read_graph(message.message(), scope));
        seen = Kind::graphs;
        break;
      case 13:
        attribute.doc_string = message.string();
        break;
      case 14:
        type = read_type(message.message());
        seen = Kind::type;
        break;
      case 15:
        types.push_back(read_type(message.message()));
        seen = Kind::types;
        break;
      case 20:
        declared = message.int32();
        break;
      case 21:
        attribute.reference = message.string();
        break;
      case 22:
        sparse = tensors_.read_sparse(message.message());
        seen = Kind::sparse_tensor;
        break;
      case 23:
        sparses.push_back(tensors_.read_sparse(message.message()));
        seen = Kind::sparse_tensors;
        break;
      default:
        attribute.other_fields += message.skip();
    }
  }
  // The oldest models have no kind; their content tells it.
  if (declared && (*declared < 0 || *declared > static_cast<int>(Kind::types))) {
    fail(ErrorCode::invalid_model, "attribute '{}' has the unknown kind {}", attribute.name, *declared);
  }
  attribute.kind = declared.value_or(0) != 0 ? static_cast<Kind>(*declared) : seen;
  if (!attribute.reference.empty()) return attribute;
  auto require = [&](bool present) {
    if (!present)
      fail(ErrorCode::invalid_attribute, "attribute '{}' is said to be of kind {}, but has none", attribute.name,
           name_of(attribute.kind));
  };
  // Graphs that the attribute's kind does not allow are dropped.
  if (graph && attribute.kind != Kind::graph) graph->detach();
  if (attribute.kind != Kind::graphs) {
    for (const auto& dropped : graphs) dropped->detach();
  }
  switch (attribute.kind) {
    case Kind::undefined:
      break;
    case Kind::float_:
      attribute.value = number.value_or(0.0f);
      break;
    case Kind::int_:
      attribute.value = integer.value_or(0);
      break;
    case Kind::string:
      attribute.value = std::move(text).value_or("");
      break;
    case Kind::tensor:
      require(tensor != nullptr);
      attribute.value = std::move(tensor);
      break;
    case Kind::graph:
      require(graph != nullptr);
      attribute.value = std::move(graph);
      break;
    case Kind::floats:
      attribute.value = std::move(floats);
      break;
    case Kind::ints:
      attribute.value = std::move(ints);
      break;
    case Kind::strings:
      attribute.value = std::move(strings);
      break;
    case Kind::tensors:
      attribute.value = std::move(tensors);
      break;
    case Kind::graphs:
      attribute.value = std::move(graphs);
      break;
    case Kind::sparse_tensor:
      require(sparse != nullptr);
      attribute.value = std::move(sparse);
      break;
    case Kind::sparse_tensors:
      attribute.value = std::move(sparses);
      break;
    case Kind::type:
      require(type.has_value());
      attribute.value = std::move(*type);
      break;
    case Kind::types:
      attribute.value = std::move(types);
      break;
  }
  return attribute;
}

}  // namespace tenon::onnx

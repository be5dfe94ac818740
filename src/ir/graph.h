#pragma once

#include <functional>
#include <list>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "ir/type.h"
#include "tenon/small_vector.h"
#include "tenon/tensor.h"

namespace tenon::ops {
class Operator;
}

namespace tenon::ir {

class Graph;
class Node;

using StringPairs = std::vector<std::pair<std::string, std::string>>;

// A tensor as a model stores it.
struct Constant {
  Tensor tensor;
  std::string name;

  // How it was stored, so that saving keeps it.
  enum class Storage : uint8_t { raw, typed_fields, external } storage = Storage::raw;
  StringPairs external_data;
  std::string doc_string;
  StringPairs metadata;
  std::string other_fields;  // fields this version does not know, in wire format
};
using ConstantPtr = std::shared_ptr<const Constant>;

struct SparseConstant {
  ConstantPtr values, indices;
  Shape shape;
  std::string other_fields;
};
using SparseConstantPtr = std::shared_ptr<const SparseConstant>;

// The kinds of attribute; the numbers are those of AttributeProto.AttributeType.
enum class AttributeKind : uint8_t {
  undefined = 0,
  float_ = 1,
  int_ = 2,
  string = 3,
  tensor = 4,
  graph = 5,
  floats = 6,
  ints = 7,
  strings = 8,
  tensors = 9,
  graphs = 10,
  sparse_tensor = 11,
  sparse_tensors = 12,
  type = 13,
  types = 14,
};
std::string_view name_of(AttributeKind kind);

struct Attribute {
  std::string name;
  AttributeKind kind = AttributeKind::undefined;
  std::variant<std::monostate, float, int64_t, std::string, ConstantPtr, std::unique_ptr<Graph>, std::vector<float>,
               std::vector<int64_t>, std::vector<std::string>, std::vector<ConstantPtr>,
               std::vector<std::unique_ptr<Graph>>, SparseConstantPtr, std::vector<SparseConstantPtr>, Type,
               std::vector<Type>>
      value;
  // In a function's body: the attribute of the calling node that this one takes its value from.
  std::string reference;
  std::string doc_string;
  std::string other_fields;

  Attribute();
  Attribute(std::string attribute_name, float number);
  Attribute(std::string attribute_name, int64_t number);
  Attribute(std::string attribute_name, std::string text);
  Attribute(std::string attribute_name, std::vector<float> numbers);
  Attribute(std::string attribute_name, std::vector<int64_t> numbers);
  Attribute(std::string attribute_name, std::vector<std::string> texts);
  Attribute(std::string attribute_name, Tensor tensor);
  Attribute(std::string attribute_name, std::unique_ptr<Graph> graph);
  Attribute(Attribute&&) noexcept;
  Attribute& operator=(Attribute&&) noexcept;
  ~Attribute();

  // Calls visit(Graph&) for the graphs it holds.
  template <typename Visit>
  void for_each_graph(Visit&& visit) const {
    if (auto* one = std::get_if<std::unique_ptr<Graph>>(&value)) visit(**one);
    if (auto* many = std::get_if<std::vector<std::unique_ptr<Graph>>>(&value)) {
      for (auto& graph : *many) visit(*graph);
    }
  }
};

// A named value: a graph input, an initializer, or an output of a node. Lives as long as its graph.
class Value {
 public:
  std::string name;
  Type type;
  std::string doc_string;
  StringPairs metadata;
  std::string other_fields;
  int value_info_position = -1;  // in the file's list of value_info entries; -1: it has none

  Graph& graph() const { return *graph_; }
  // The node that computes it; null for inputs, initializers and names nobody defines.
  Node* producer() const { return producer_; }
  // Nodes that read it, once per use; nodes in subgraphs included.
  const std::vector<Node*>& users() const { return users_; }
  bool is_graph_input() const { return is_input_; }
  // The tensor of an initializer, else null. An initializer that is a graph input too is a default.
  const ConstantPtr& constant() const { return constant_; }
  const SparseConstantPtr& sparse_constant() const { return sparse_constant_; }
  bool is_initializer() const { return constant_ || sparse_constant_; }
  // Neither input, initializer nor computed: the model refers to a name that it does not define.
  bool is_undefined() const { return !producer_ && !is_input_ && !is_initializer(); }
  // An initializer whose content no caller can change.
  bool is_fixed() const { return constant_ && !is_input_; }

 private:
  friend class Graph;
  friend class Node;
  Graph* graph_ = nullptr;
  std::list<Value>::iterator self_;
  Node* producer_ = nullptr;
  std::vector<Node*> users_;
  bool is_input_ = false;
  ConstantPtr constant_;
  SparseConstantPtr sparse_constant_;
};

// What a node was in the file, for errors and reports.
struct Origin {
  std::string op_type, domain, name;
  int64_t version = 0;  // of the operator set it was written for
  int position = -1;    // in its graph's list
  std::string path;     // outer nodes or function, outermost first; empty in the main graph
};

class Node {
 public:
  std::string op_type, domain, overload, name, doc_string;
  std::vector<Attribute> attributes;
  StringPairs metadata;
  std::string other_fields;
  std::shared_ptr<const Origin> origin;
  // Set when the node is lifted, if its operator is one that the user brings; see ops::operator_of.
  std::shared_ptr<const ops::Operator> custom_operator;

  Graph& graph() const { return *graph_; }
  // Higher than that of every node that was made before this one.
  uint64_t serial() const { return serial_; }
  size_t input_count() const { return inputs_.size(); }
  size_t output_count() const { return outputs_.size(); }
  // Null for an optional input or output that is left out, past the end too.
  Value* input(size_t i) const { return i < inputs_.size() ? inputs_[i] : nullptr; }
  Value* output(size_t i) const { return i < outputs_.size() ? outputs_[i] : nullptr; }
  std::span<Value* const> inputs() const { return {inputs_.data(), inputs_.size()}; }
  std::span<Value* const> outputs() const { return {outputs_.data(), outputs_.size()}; }

  void set_input(size_t i, Value* value);
  void add_input(Value* value) { set_input(inputs_.size(), value); }
  void remove_trailing_inputs(size_t keep);
  // Makes this node the producer of `value`, which must have none.
  void add_output(Value* value);
  void remove_trailing_outputs(size_t keep);

  const Attribute* attribute(std::string_view name) const;
  void set_attribute(Attribute attribute);
  void remove_attribute(std::string_view name);

  // Typed access; a default when absent. Throws ErrorCode::invalid_attribute when it is of another kind.
  int64_t int_attribute(std::string_view name, int64_t otherwise) const;
  float float_attribute(std::string_view name, float otherwise) const;
  std::string string_attribute(std::string_view name, std::string_view otherwise) const;
  std::vector<int64_t> ints_attribute(std::string_view name, std::vector<int64_t> otherwise = {}) const;
  std::vector<float> floats_attribute(std::string_view name, std::vector<float> otherwise = {}) const;
  std::vector<std::string> strings_attribute(std::string_view name) const;
  // Null when absent.
  const Tensor* tensor_attribute(std::string_view name) const;
  const Graph* graph_attribute(std::string_view name) const;

  // "MatMul 'scores' (node 12)", with the operator and name the file has; outer nodes in front.
  std::string describe() const;
  // describe() without the path of outer nodes.
  std::string describe_here() const;

 private:
  friend class Graph;
  Graph* graph_ = nullptr;
  uint64_t serial_ = 0;
  std::list<Node>::iterator self_;
  SmallVector<Value*, 4> inputs_;
  SmallVector<Value*, 2> outputs_;
};

// Nodes in order with the values they connect. Values of outer graphs are used directly.
class Graph {
 public:
  Graph() = default;
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;
  ~Graph();

  std::string name, doc_string;
  StringPairs metadata;
  std::string other_fields;
  // quantization_annotation: tensor name and its parameter names.
  std::vector<std::pair<std::string, StringPairs>> quantization_annotations;

  const std::vector<Value*>& inputs() const { return inputs_; }
  const std::vector<Value*>& outputs() const { return outputs_; }
  const std::vector<Type>& declared_output_types() const { return output_types_; }
  const std::vector<Value*>& initializers() const { return initializers_; }
  const std::list<Node>& nodes() const { return nodes_; }
  std::list<Node>& nodes() { return nodes_; }
  const std::list<Value>& values() const { return values_; }
  std::list<Value>& values() { return values_; }
  // The node whose attribute holds this graph, and that node's graph; null for a main graph or function body.
  Node* owner() const { return owner_; }

  // A new value that nothing defines yet; `value_name` is made unique when `fresh`.
  Value& add_value(std::string value_name, bool fresh = false);
  void add_input(Value& value);
  // It stays a value of the graph: an initializer if it has a default, else one that nothing defines.
  void remove_input(Value& value);
  // `declared` is the type the file gives the output; kept beside the value's own, which may be an outer graph's.
  void add_output(Value& value, Type declared = {}) {
    outputs_.push_back(&value);
    output_types_.push_back(std::move(declared));
  }
  void set_output(size_t i, Value& value) { outputs_[i] = &value; }
  void remove_output(size_t i);
  void set_initializer(Value& value, ConstantPtr constant);
  void set_initializer(Value& value, SparseConstantPtr constant);
  // A new initializer with a fresh name.
  Value& add_constant(Tensor tensor, std::string_view name_hint);
  void remove_initializer(Value& value);

  // A node before `before` (at the end if null).
  Node& add_node(std::string op_type, std::string domain = {}, Node* before = nullptr);
  // Nodes and values that were removed from a graph but are still there to be pointed at.
  struct Removed;
  // Removes a node whose outputs nobody uses; its output values go with it. Both stay in `bin`, if there is one.
  void remove_node(Node& node, Removed* bin = nullptr);
  // Removes the initializers that nobody reads, for which `may_go` holds.
  void remove_unused_initializers(const std::function<bool(const Value&)>& may_go, Removed* bin = nullptr);
  // Every use of `old_value`, as a graph output too, becomes a use of `new_value`.
  void replace_uses(Value& old_value, Value& new_value);

  // Stops using values of outer graphs, here and in subgraphs: for a graph that goes before those do.
  void detach();

  // Puts nodes before those that read them. Throws ErrorCode::cyclic_graph, naming the cycle.
  void sort_topologically();

  // A deep copy; tensors are shared. `outer` maps values of enclosing graphs that were copied too.
  std::unique_ptr<Graph> clone(std::map<const Value*, Value*>* outer = nullptr) const;

 private:
  friend class Node;
  friend struct Attribute;
  std::list<Value> values_;
  std::list<Node> nodes_;
  std::vector<Value*> inputs_, outputs_, initializers_;
  std::vector<Type> output_types_;
  Node* owner_ = nullptr;
  int64_t fresh_names_ = 0;

  friend void adopt_subgraphs(Node& node);
};

struct Graph::Removed {
  std::list<Value> values;
  std::list<Node> nodes;
};

// Copies one attribute, subgraphs included.
Attribute clone(const Attribute& attribute, std::map<const Value*, Value*>& values);

// Tells the graphs in the node's attributes whose they are.
void adopt_subgraphs(Node& node);

// Operator sets by domain, in the order of the file. "" and "ai.onnx" are one domain.
class OpsetImports {
 public:
  void add(std::string domain, int64_t version) { entries_.emplace_back(std::move(domain), version); }
  void set(std::string_view domain, int64_t version);
  // The version imported for a domain, 0 if none.
  int64_t version(std::string_view domain) const;
  const std::vector<std::pair<std::string, int64_t>>& entries() const { return entries_; }

 private:
  std::vector<std::pair<std::string, int64_t>> entries_;
};

// "" for "ai.onnx", else the domain itself.
std::string_view canonical_domain(std::string_view domain);

// A model-local function. `body`'s inputs and outputs are the function's.
struct Function {
  std::string domain, name, overload, doc_string;
  std::vector<std::string> attribute_names;  // required ones
  std::vector<Attribute> attribute_defaults;
  OpsetImports opset_imports;
  std::unique_ptr<Graph> body;
  StringPairs metadata;
  std::string other_fields;
};

struct Model {
  int64_t ir_version = 0;
  OpsetImports opset_imports;
  std::string producer_name, producer_version, domain, doc_string;
  int64_t model_version = 0;
  StringPairs metadata;
  std::unique_ptr<Graph> graph;
  std::vector<std::unique_ptr<Function>> functions;
  std::string other_fields;

  std::unique_ptr<Model> clone() const;
};

// Gives every node of the model an origin, subgraphs and functions included.
void record_origins(Model& model);

}  // namespace tenon::ir

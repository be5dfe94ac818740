#include <algorithm>

#include "base/fail.h"
#include "ir/graph.h"

namespace tenon::ir {

std::string_view name_of(AttributeKind kind) {
  static constexpr std::string_view names[] = {
      "undefined", "float",   "int",    "string",        "tensor",         "graph", "floats", "ints",
      "strings",   "tensors", "graphs", "sparse tensor", "sparse tensors", "type",  "types"};
  return names[static_cast<size_t>(kind)];
}

Attribute::Attribute() = default;
Attribute::Attribute(Attribute&&) noexcept = default;
Attribute& Attribute::operator=(Attribute&&) noexcept = default;
Attribute::~Attribute() = default;
Attribute::Attribute(std::string n, float v) : name(std::move(n)), kind(AttributeKind::float_), value(v) {}
Attribute::Attribute(std::string n, int64_t v) : name(std::move(n)), kind(AttributeKind::int_), value(v) {}
Attribute::Attribute(std::string n, std::string v)
    : name(std::move(n)), kind(AttributeKind::string), value(std::move(v)) {}
Attribute::Attribute(std::string n, std::vector<float> v)
    : name(std::move(n)), kind(AttributeKind::floats), value(std::move(v)) {}
Attribute::Attribute(std::string n, std::vector<int64_t> v)
    : name(std::move(n)), kind(AttributeKind::ints), value(std::move(v)) {}
Attribute::Attribute(std::string n, std::vector<std::string> v)
    : name(std::move(n)), kind(AttributeKind::strings), value(std::move(v)) {}
Attribute::Attribute(std::string n, Tensor tensor) : name(std::move(n)), kind(AttributeKind::tensor) {
  auto constant = std::make_shared<Constant>();
  constant->tensor = std::move(tensor);
  value = ConstantPtr(std::move(constant));
}
Attribute::Attribute(std::string n, std::unique_ptr<Graph> graph)
    : name(std::move(n)), kind(AttributeKind::graph), value(std::move(graph)) {}

void Node::set_input(size_t i, Value* value) {
  if (i >= inputs_.size()) inputs_.resize(i + 1, nullptr);
  if (Value* old = inputs_[i]) {
    auto found = std::ranges::find(old->users_, this);
    if (found != old->users_.end()) old->users_.erase(found);
  }
  inputs_[i] = value;
  if (value) value->users_.push_back(this);
}

void Node::remove_trailing_inputs(size_t keep) {
  while (inputs_.size() > keep) {
    set_input(inputs_.size() - 1, nullptr);
    inputs_.pop_back();
  }
}

void Node::add_output(Value* value) {
  outputs_.push_back(value);
  if (!value) return;
  TENON_CHECK(!value->producer_);
  value->producer_ = this;
}

void Node::remove_trailing_outputs(size_t keep) {
  while (outputs_.size() > keep) {
    if (Value* value = outputs_.back()) value->producer_ = nullptr;
    outputs_.pop_back();
  }
}

const Attribute* Node::attribute(std::string_view attribute_name) const {
  for (const Attribute& attribute : attributes) {
    if (attribute.name == attribute_name) return &attribute;
  }
  return nullptr;
}

void Node::set_attribute(Attribute attribute) {
  remove_attribute(attribute.name);
  attributes.push_back(std::move(attribute));
  adopt_subgraphs(*this);
}

void Node::remove_attribute(std::string_view attribute_name) {
  std::erase_if(attributes, [&](const Attribute& a) { return a.name == attribute_name; });
}

namespace {

template <typename T>
const T* typed(const Node& node, std::string_view name, AttributeKind kind) {
  const Attribute* attribute = node.attribute(name);
  if (!attribute) return nullptr;
  const T* value = std::get_if<T>(&attribute->value);
  if (!value || attribute->kind != kind) {
    Error error(ErrorCode::invalid_attribute, fmt::format("attribute '{}' must be of kind {}, it is of kind {}", name,
                                                          name_of(kind), name_of(attribute->kind)));
    throw error.at_node(node.describe());
  }
  return value;
}

}  // namespace

int64_t Node::int_attribute(std::string_view n, int64_t otherwise) const {
  const auto* value = typed<int64_t>(*this, n, AttributeKind::int_);
  return value ? *value : otherwise;
}

float Node::float_attribute(std::string_view n, float otherwise) const {
  const auto* value = typed<float>(*this, n, AttributeKind::float_);
  return value ? *value : otherwise;
}

std::string Node::string_attribute(std::string_view n, std::string_view otherwise) const {
  const auto* value = typed<std::string>(*this, n, AttributeKind::string);
  return value ? *value : std::string(otherwise);
}

std::vector<int64_t> Node::ints_attribute(std::string_view n, std::vector<int64_t> otherwise) const {
  const auto* value = typed<std::vector<int64_t>>(*this, n, AttributeKind::ints);
  if (value) return *value;
  return otherwise;
}

std::vector<float> Node::floats_attribute(std::string_view n, std::vector<float> otherwise) const {
  const auto* value = typed<std::vector<float>>(*this, n, AttributeKind::floats);
  if (value) return *value;
  return otherwise;
}

std::vector<std::string> Node::strings_attribute(std::string_view n) const {
  const auto* value = typed<std::vector<std::string>>(*this, n, AttributeKind::strings);
  return value ? *value : std::vector<std::string>{};
}

const Tensor* Node::tensor_attribute(std::string_view n) const {
  const auto* value = typed<ConstantPtr>(*this, n, AttributeKind::tensor);
  return value ? &(*value)->tensor : nullptr;
}

const Graph* Node::graph_attribute(std::string_view n) const {
  const auto* value = typed<std::unique_ptr<Graph>>(*this, n, AttributeKind::graph);
  return value ? value->get() : nullptr;
}

std::string Node::describe_here() const {
  const std::string& op = origin ? origin->op_type : op_type;
  const std::string& original_domain = origin ? origin->domain : domain;
  const std::string& original_name = origin ? origin->name : name;
  std::string text = original_domain.empty() ? op : original_domain + "." + op;
  if (!original_name.empty()) text += " '" + original_name + "'";
  if (origin && origin->position >= 0) text += fmt::format(" (node {})", origin->position);
  return text;
}

std::string Node::describe() const {
  if (origin && !origin->path.empty()) return origin->path + " > " + describe_here();
  return describe_here();
}

}  // namespace tenon::ir

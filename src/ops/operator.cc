#include "ops/operator.h"

#include <algorithm>

#include "base/fail.h"
#include "base/names.h"

namespace tenon::ops {

std::string TypeSet::to_string() const {
  std::vector<std::string_view> names;
  for (int i = 1; i < element_type_count; ++i) {
    if (contains(static_cast<ElementType>(i))) names.push_back(name_of(static_cast<ElementType>(i)));
  }
  std::string text;
  for (size_t i = 0; i < names.size(); ++i) {
    if (i) text += i + 1 == names.size() ? " or " : ", ";
    text += names[i];
  }
  return text;
}

Operator& Operator::add(std::vector<Parameter>& list, std::string parameter, std::string variable,
                        Parameter::Count count) {
  list.push_back({std::move(parameter), std::move(variable), {}, Kinds::tensor, count, 1, true});
  return *this;
}

Operator& Operator::add(std::vector<Parameter>& list, std::string parameter, TypeSet types, Parameter::Count count) {
  list.push_back({std::move(parameter), {}, types, Kinds::tensor, count, 1, true});
  return *this;
}

Operator& Operator::variadic_input(std::string parameter, std::string variable, int at_least, bool same_types) {
  inputs.push_back({std::move(parameter),
                    std::move(variable),
                    {},
                    Kinds::tensor,
                    Parameter::Count::any_number,
                    at_least,
                    same_types});
  return *this;
}

Operator& Operator::variadic_output(std::string parameter, std::string variable, int at_least, bool same_types) {
  outputs.push_back({std::move(parameter),
                     std::move(variable),
                     {},
                     Kinds::tensor,
                     Parameter::Count::any_number,
                     at_least,
                     same_types});
  return *this;
}

Operator& Operator::types(std::string_view variable, TypeSet allowed, Kinds kinds) {
  for (auto* list : {&inputs, &outputs}) {
    for (Parameter& parameter : *list) {
      if (parameter.variable == variable) {
        parameter.types = allowed;
        parameter.kinds = kinds;
      }
    }
  }
  return *this;
}

Operator& Operator::attribute(std::string attribute_name, ir::AttributeKind kind) {
  attributes.push_back({std::move(attribute_name), kind, false});
  return *this;
}

Operator& Operator::required_attribute(std::string attribute_name, ir::AttributeKind kind) {
  attributes.push_back({std::move(attribute_name), kind, true});
  return *this;
}

Operator& Operator::infer(std::function<void(Inference&)> rule) {
  infer_types = std::move(rule);
  return *this;
}

Operator& Operator::lift(int from, int to, std::function<void(ir::Node&)> adapter) {
  adapters.push_back({from, to, std::move(adapter)});
  return *this;
}

Operator& Operator::lower(int from, int to, std::function<std::string(ir::Node&)> inverse) {
  inverses.push_back({from, to, std::move(inverse)});
  return *this;
}

Operator& Operator::attribute_since(int version, std::string attribute_name,
                                    std::variant<std::monostate, int64_t, std::string> otherwise) {
  additions.push_back({version, std::move(attribute_name), -1, std::move(otherwise)});
  return *this;
}

Operator& Operator::input_since(int version, int input_index) {
  additions.push_back({version, {}, input_index, {}});
  return *this;
}

Operator& Operator::decompose(std::function<void(Decomposition&)> writer) {
  decomposition = std::move(writer);
  return *this;
}

int Operator::version_at(int64_t opset) const {
  int version = versions.front();
  for (int candidate : versions) {
    if (candidate <= opset) version = candidate;
  }
  return version;
}

namespace {

std::string key(std::string_view domain, std::string_view name) {
  return std::string(ir::canonical_domain(domain)) + ":" + std::string(name);
}

}  // namespace

Operator& OperatorList::add(const std::string& name, std::vector<int> versions, std::string_view domain) {
  auto op = std::make_unique<Operator>();
  op->name = name;
  op->domain = domain;
  op->versions = std::move(versions);
  auto [at, added] = operators_.emplace(key(domain, name), std::move(op));
  TENON_CHECK(added);
  return *at->second;
}

const Operator* OperatorList::find(std::string_view domain, std::string_view name) const {
  auto found = operators_.find(key(domain, name));
  return found == operators_.end() ? nullptr : found->second.get();
}

std::vector<const Operator*> OperatorList::all() const {
  std::vector<const Operator*> list;
  for (const auto& [_, op] : operators_) list.push_back(op.get());
  std::ranges::sort(list, [](const Operator* a, const Operator* b) {
    return std::tie(a->domain, a->name) < std::tie(b->domain, b->name);
  });
  return list;
}

bool OperatorList::knows_domain(std::string_view domain) const {
  std::string prefix = key(domain, "");
  return std::ranges::any_of(operators_, [&](const auto& entry) { return entry.first.starts_with(prefix); });
}

const Operator* operator_of(const ir::Node& node) {
  return node.custom_operator ? node.custom_operator.get() : operators().find(node.domain, node.op_type);
}

namespace {

std::string check_count(const std::vector<Parameter>& parameters, std::span<ir::Value* const> given, const char* what) {
  bool variadic = !parameters.empty() && parameters.back().count == Parameter::Count::any_number;
  if (!variadic && given.size() > parameters.size()) {
    return fmt::format("it takes at most {} {}s, {} are given", parameters.size(), what, given.size());
  }
  for (size_t i = 0; i < parameters.size(); ++i) {
    const Parameter& parameter = parameters[i];
    if (parameter.count == Parameter::Count::one && (i >= given.size() || !given[i])) {
      return fmt::format("its {} {} '{}' is missing", what, i, parameter.name);
    }
    if (parameter.count != Parameter::Count::any_number) continue;
    if (given.size() < i + static_cast<size_t>(parameter.at_least)) {
      return fmt::format("it takes at least {} {}s, {} are given", i + static_cast<size_t>(parameter.at_least), what,
                         given.size());
    }
    for (size_t k = i; k < given.size(); ++k) {
      if (!given[k]) return fmt::format("its {} {}, one of '{}', is left out", what, k, parameter.name);
    }
  }
  return {};
}

std::string check_attributes(const Operator& op, const ir::Node& node) {
  for (const ir::Attribute& attribute : node.attributes) {
    auto rule = std::ranges::find(op.attributes, attribute.name, &AttributeRule::name);
    if (rule == op.attributes.end()) {
      std::vector<std::string_view> names;
      for (const AttributeRule& r : op.attributes) names.push_back(r.name);
      std::string_view nearest = nearest_name(attribute.name, names);
      std::string suggestion = nearest.empty() ? "" : fmt::format("; did the model mean '{}'?", nearest);
      return fmt::format("it has no attribute '{}'{}", attribute.name, suggestion);
    }
    if (attribute.kind != rule->kind && attribute.reference.empty()) {
      return fmt::format("attribute '{}' must be of kind {}, it is of kind {}", attribute.name, name_of(rule->kind),
                         name_of(attribute.kind));
    }
  }
  for (const AttributeRule& rule : op.attributes) {
    if (rule.required && !node.attribute(rule.name)) return fmt::format("attribute '{}' is missing", rule.name);
  }
  return {};
}

}  // namespace

std::string check_node(const Operator& op, const ir::Node& node) {
  if (std::string problem = check_count(op.inputs, node.inputs(), "input"); !problem.empty()) return problem;
  // Any output may be left out when nobody reads it; there may only not be more.
  bool open_ended = !op.outputs.empty() && op.outputs.back().count == Parameter::Count::any_number;
  if (!open_ended && node.output_count() > op.outputs.size()) {
    return fmt::format("it has at most {} outputs, {} are given", op.outputs.size(), node.output_count());
  }
  return check_attributes(op, node);
}

}  // namespace tenon::ops

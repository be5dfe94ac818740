#include "ops/check_types.h"

#include <unordered_map>

#include "base/fail.h"

namespace tenon::ops {
namespace {

// The parameter that input or output i belongs to; the last one when it is variadic.
const Parameter* parameter_at(const std::vector<Parameter>& parameters, size_t i) {
  if (i < parameters.size()) return &parameters[i];
  if (!parameters.empty() && parameters.back().count == Parameter::Count::any_number) return &parameters.back();
  return nullptr;
}

// The tensor type inside sequences and optionals.
const ir::Type& innermost(const ir::Type& type) {
  const ir::Type* t = &type;
  while (t->inner && t->kind != ir::Type::Kind::map) t = t->inner.get();
  return *t;
}

bool kind_allowed(Kinds kinds, ir::Type::Kind kind) {
  using Kind = ir::Type::Kind;
  switch (kinds) {
    case Kinds::tensor:
      return kind == Kind::tensor || kind == Kind::sparse_tensor;
    case Kinds::sequence:
      return kind == Kind::sequence;
    case Kinds::optional:
      return kind == Kind::optional;
    case Kinds::map:
      return kind == Kind::map;
    case Kinds::any:
      return true;
  }
  return true;
}

// What the element types of a parameter are those of, in "takes …".
const char* what_kind_takes(Kinds kinds) {
  if (kinds == Kinds::tensor) return "tensors of ";
  return kinds == Kinds::map ? "maps with keys of " : "";
}

}  // namespace

void check_input_types(const Operator& op, const ir::Node& node, std::span<const Fact* const> inputs) {
  std::unordered_map<std::string, size_t> bound;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const Parameter* parameter = parameter_at(op.inputs, i);
    if (!inputs[i] || !parameter) continue;
    const ir::Type& type = inputs[i]->type;
    if (!type.known()) continue;
    ElementType element = innermost(type).element;
    bool element_fits =
        parameter->types.empty() || element == ElementType::undefined || parameter->types.contains(element);
    if (!kind_allowed(parameter->kinds, type.kind) || !element_fits) {
      throw Error(ErrorCode::type_mismatch,
                  fmt::format("input {} '{}' takes {}{}\n  {}", i, parameter->name, what_kind_takes(parameter->kinds),
                              parameter->types.to_string(), describe_input(node, i, type)))
          .on_tensor(node.input(i)->name);
    }
    if (parameter->variable.empty() || !parameter->same_types) continue;
    auto [first, added] = bound.emplace(parameter->variable, i);
    if (added) continue;
    const ir::Type& other = inputs[first->second]->type;
    if (!ir::same_kind(other, type)) {
      throw Error(ErrorCode::type_mismatch,
                  fmt::format("inputs {} and {} must have one type\n  {}\n  {}", first->second, i,
                              describe_input(node, first->second, other), describe_input(node, i, type)),
                  "insert a Cast before one of them")
          .on_tensor(node.input(i)->name);
    }
  }
}

}  // namespace tenon::ops

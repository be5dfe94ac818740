#include "ir/type.h"

#include <fmt/core.h>

namespace tenon::ir {

Type Type::tensor(ElementType element, std::optional<SymbolicShape> shape) {
  Type type;
  type.kind = Kind::tensor;
  type.element = element;
  type.shape = std::move(shape);
  return type;
}

Type Type::sparse_tensor(ElementType element, std::optional<SymbolicShape> shape) {
  Type type = tensor(element, std::move(shape));
  type.kind = Kind::sparse_tensor;
  return type;
}

Type Type::sequence(Type item) {
  Type type;
  type.kind = Kind::sequence;
  type.inner = std::make_shared<const Type>(std::move(item));
  return type;
}

Type Type::optional(Type item) {
  Type type = sequence(std::move(item));
  type.kind = Kind::optional;
  return type;
}

Type Type::map(ElementType key, Type value) {
  Type type = sequence(std::move(value));
  type.kind = Kind::map;
  type.element = key;
  return type;
}

std::string Type::name() const {
  std::string item = inner ? inner->name() : "?";
  std::string_view elements = element == ElementType::undefined ? "?" : name_of(element);
  switch (kind) {
    case Kind::unknown:
      return "?";
    case Kind::tensor:
      return fmt::format("tensor({})", elements);
    case Kind::sparse_tensor:
      return fmt::format("sparse_tensor({})", elements);
    case Kind::sequence:
      return fmt::format("seq({})", item);
    case Kind::optional:
      return fmt::format("optional({})", item);
    case Kind::map:
      return fmt::format("map({}, {})", elements, item);
    case Kind::opaque:
      return details ? fmt::format("opaque({}, {})", details->opaque_domain, details->opaque_name) : "opaque";
  }
  return "?";
}

std::string Type::to_string() const {
  if (shape) return name() + " " + tenon::to_string(*shape);
  return name();
}

bool same_kind(const Type& expected, const Type& actual) {
  if (!expected.known() || !actual.known()) return true;
  if (expected.kind != actual.kind) return false;
  if (expected.element != actual.element && expected.element != ElementType::undefined &&
      actual.element != ElementType::undefined) {
    return false;
  }
  if (expected.inner && actual.inner) return same_kind(*expected.inner, *actual.inner);
  return true;
}

}  // namespace tenon::ir

#include "ops/inference.h"
#include "ops/operator.h"

namespace tenon::ops {
namespace {

using ir::AttributeKind;
using ir::Type;

void infer_optional(Inference& i) {
  if (i.has_input(0)) return i.output(0, Type::optional(i.type(0)));
  const ir::Attribute* attribute = i.node().attribute("type");
  const Type* type = attribute ? std::get_if<Type>(&attribute->value) : nullptr;
  if (!type) i.fail_with(ErrorCode::invalid_attribute, "an Optional without an input needs the attribute 'type'");
  i.output(0, Type::optional(*type));
}

// Anything but an optional is there.
void infer_has_element(Inference& i) {
  i.output(0, ElementType::boolean, SymbolicShape{});
  if (!i.has_input(0))
    i.output_values(0, {Dim(0)});
  else if (i.type(0).known() && i.type(0).kind != Type::Kind::optional)
    i.output_values(0, {Dim(1)});
}

void infer_get_element(Inference& i) {
  const Type& type = i.type(0);
  if (type.kind != Type::Kind::optional) return i.output(0, i.fact(0));
  if (type.inner) i.output(0, *type.inner);
}

std::string input_is_there(ir::Node& node) { return node.input(0) ? "" : "before version 18 it had to have an input"; }

}  // namespace

void define_optional(OperatorList& list) {
  list.add("Optional", {15, 28})
      .optional_input("input", "V")
      .output("output", "O")
      .types("V", types::all, Kinds::any)
      .types("O", types::all, Kinds::optional)
      .attribute("type", AttributeKind::type)
      .infer(infer_optional);
  list.add("OptionalHasElement", {15, 18, 28})
      .optional_input("input", "O")
      .output("output", types::bools)
      .types("O", types::all, Kinds::any)
      .infer(infer_has_element)
      .lower(18, 15, input_is_there);
  list.add("OptionalGetElement", {15, 18, 28})
      .input("input", "O")
      .output("output", "V")
      .types("O", types::all, Kinds::any)
      .types("V", types::all, Kinds::any)
      .infer(infer_get_element);
}

}  // namespace tenon::ops

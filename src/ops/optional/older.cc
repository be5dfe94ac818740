#include "ops/decomposition.h"
#include "ops/older_forms.h"

namespace tenon::ops {
namespace {

bool is_optional(const Decomposition& d) {
  return d.has_input(0) && d.node().input(0)->type.kind == ir::Type::Kind::optional;
}

// Anything but an optional is there.
void known_presence(Decomposition& d) {
  if (is_optional(d)) d.give_up("there are no optional values in older opsets");
  d.output(0, d.number(d.has_input(0) ? 1 : 0, ElementType::int64));
}

void element_itself(Decomposition& d) {
  if (is_optional(d)) d.give_up("there are no optional values in older opsets");
  d.output(0, d.node().input(0));
}

}  // namespace

void older_optional(OlderForms& forms) {
  forms.add("OptionalHasElement", 18, known_presence);
  forms.add("OptionalGetElement", 18, element_itself);
}

}  // namespace tenon::ops

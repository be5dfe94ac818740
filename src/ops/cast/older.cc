#include "ops/decomposition.h"
#include "ops/older_forms.h"
#include "ops/operator.h"

namespace tenon::ops {
namespace {

// Casts between integers keep the bits.
void cast_of_integers(Decomposition& d) {
  const ElementType from = d.element(0), to = d.node().output(0)->type.element;
  if (from != to && (!types::ints.contains(from) || !types::ints.contains(to)))
    d.give_up("no older operator reads the bits of one type as another");
  d.output(0, d.input(0));
}

}  // namespace

void older_cast(OlderForms& forms) { forms.add("BitCast", 26, cast_of_integers); }

}  // namespace tenon::ops

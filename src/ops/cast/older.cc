#include "ops/decomposition.h"
#include "ops/older_forms.h"
#include "ops/operator.h"

namespace tenon::ops {
namespace {

// Casts between integers of one size keep the bits.
void cast_of_integers(Decomposition& d) {
  const ElementType from = d.element(0), to = d.node().output(0)->type.element;
  const TypeSet readable = types::ints | types::bools;
  if (from != to && (!readable.contains(from) || !types::ints.contains(to)))
    d.give_up("no older operator reads the bits of one type as another");
  d.output(0, d.input(0));
}

}  // namespace

void older_cast(OlderForms& forms) { forms.add("BitCast", 26, cast_of_integers); }

}  // namespace tenon::ops

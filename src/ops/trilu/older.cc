#include "ops/decomposition.h"
#include "ops/older_forms.h"
#include "ops/operator.h"

namespace tenon::ops {
namespace {

void triangle_of_zeros(Decomposition& d) {
  Term x = d.input(0);
  if (!(types::numbers | types::bools).contains(x.type)) d.give_up("there is no zero of its type");
  Term k = d.has_input(1) ? d.input(1) : d.number(0, ElementType::int64);
  Term distance = d.indices(size_of(x, -1)) - unsqueeze(d.indices(size_of(x, -2)), {1});
  const bool upper = d.node().int_attribute("upper", 1) != 0;
  Term dropped = upper ? less(distance, k) : greater(distance, k);
  d.output(0, x.type == ElementType::boolean ? both(negation(dropped), x) : where(dropped, 0, x));
}

}  // namespace

void older_trilu(OlderForms& forms) { forms.add("Trilu", 14, triangle_of_zeros); }

}  // namespace tenon::ops

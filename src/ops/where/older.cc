#include "ops/older_forms.h"
#include "ops/older_support.h"

namespace tenon::ops {
namespace {

// Both sides one after the other, of which each element is picked by its position.
void pick_from_both(Decomposition& d) {
  const auto& shape = d.node().output(0)->type.shape;
  int64_t elements = 1;
  std::vector<int64_t> sizes;
  if (!shape) d.give_up("the shape of its output is not known");
  for (const Dim& dim : *shape) {
    if (!dim.is_known()) d.give_up("the shape of its output is not known");
    sizes.push_back(dim.value());
    elements *= dim.value();
  }
  if (elements == 0 || elements > 1 << 20) d.give_up("its output is empty or large");
  Term whole = d.ints(sizes), flat = d.ints({-1});
  auto side = [&](Term x) { return d.add("Reshape", {expand(x, whole), flat}); };
  Term condition = cast(expand(d.input(0), whole), ElementType::int64);
  Term place = d.add("Reshape", {d.ints(numbers_up_to(elements)), whole});
  Term both_sides = concat({side(d.input(2)), side(d.input(1))});
  d.output(0, gather(both_sides, place + condition * static_cast<double>(elements), 0));
}

}  // namespace

void older_where(OlderForms& forms) { forms.add("Where", 9, pick_from_both); }

}  // namespace tenon::ops

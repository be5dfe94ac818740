#include "ops/older_forms.h"
#include "ops/older_support.h"

namespace tenon::ops {
namespace {

// Repeats each axis as often as it takes.
void tile_to_shape(Decomposition& d) {
  const auto& result = d.node().output(0)->type.shape;
  const int64_t rank = d.rank(0);
  if (!result) d.give_up("the rank of its output is not known");
  const auto wanted = static_cast<int64_t>(result->size());
  Term x = d.input(0);
  std::vector<int64_t> repeats;
  for (int64_t axis = 0; axis < wanted; ++axis) {
    const Dim& to = (*result)[static_cast<size_t>(axis)];
    const Dim from =
        axis < wanted - rank ? Dim(1) : (*d.node().input(0)->type.shape)[static_cast<size_t>(axis - wanted + rank)];
    if (!to.is_known() || !from.is_known()) d.give_up("its sizes are not known");
    repeats.push_back(from.value() == to.value() ? 1 : to.value());
  }
  std::vector<int64_t> added = numbers_up_to(wanted - rank);
  if (!added.empty()) x = unsqueeze(x, added);
  d.output(0, wanted == 0 ? x : d.add("Tile", {x, d.ints(repeats)}));
}

}  // namespace

void older_expand(OlderForms& forms) { forms.add("Expand", 8, tile_to_shape); }

}  // namespace tenon::ops

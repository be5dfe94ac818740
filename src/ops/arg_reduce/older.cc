#include "ops/older_forms.h"
#include "ops/older_support.h"

namespace tenon::ops {
namespace {

// The last of equal elements is the first one from behind.
void first_from_behind(Decomposition& d) {
  if (d.node().int_attribute("select_last_index", 0) == 0) d.give_up("it takes the first of equal elements already");
  const int64_t axis = d.node().int_attribute("axis", 0), keep = d.node().int_attribute("keepdims", 1);
  Term x = d.input(0), last = size_of(x, axis < 0 ? axis + d.rank(0) : axis) - 1;
  Term reversed = gather(x, last - d.indices(last + 1), axis);
  Term found = d.add(d.node().op_type, {reversed}, {{"axis", axis}, {"keepdims", keep}}, ElementType::int64);
  d.output(0, d.add("Reshape", {last, d.ints({})}) - found);
}

}  // namespace

void older_arg_reduce(OlderForms& forms) {
  for (const char* op : {"ArgMax", "ArgMin"}) forms.add(op, 12, first_from_behind);
}

}  // namespace tenon::ops

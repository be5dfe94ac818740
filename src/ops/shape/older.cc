#include <limits>

#include "ops/decomposition.h"
#include "ops/older_forms.h"

namespace tenon::ops {
namespace {

void part_of_whole_shape(Decomposition& d) {
  if (!d.node().attribute("start") && !d.node().attribute("end")) d.give_up("it is the whole shape already");
  const int64_t start = d.node().int_attribute("start", 0);
  const int64_t end = d.node().int_attribute("end", std::numeric_limits<int64_t>::max());
  d.output(0, slice(shape_of(d.input(0)), d.ints({start}), d.ints({end}), 0));
}

}  // namespace

void older_shape(OlderForms& forms) { forms.add("Shape", 15, part_of_whole_shape); }

}  // namespace tenon::ops

#include "ops/older_forms.h"
#include "ops/older_support.h"
#include "ops/operator.h"

namespace tenon::ops {
namespace {

struct Found {
  Term values, indices;
};

// The k largest of floats, sorted.
Found largest(Decomposition& d, Term x, Term k, int64_t axis) {
  auto found = add_with_outputs(d, "TopK", {x, k}, {x.type, ElementType::int64}, {{"axis", axis}});
  return {found[0], found[1]};
}

// The smallest ones are the largest of the negative, any order may be a sorted one, and a number of them that is
// computed is cut off all of them.
void largest_and_sorted(Decomposition& d) {
  const bool negative = d.node().int_attribute("largest", 1) == 0;
  const int64_t rank = d.rank(0), given = d.node().int_attribute("axis", -1), axis = given < 0 ? given + rank : given;
  Term x = d.input(0), k = d.input(1);
  if (!types::floats.contains(x.type) && bits_of(x.type) > 32) d.give_up("older versions take floats only");
  if (!types::floats.contains(x.type)) x = cast(x, ElementType::float64);
  const int64_t size = d.known_size(0, static_cast<int>(axis));
  const bool computed = !d.node().input(1)->is_fixed();
  if (computed && size < 0) d.give_up("neither its K nor the size of its axis is known");
  const bool sorted = d.node().int_attribute("sorted", 1) != 0;
  if (!negative && !computed && sorted && x.type == d.element(0)) d.give_up("it finds the largest ones already");
  Found found = largest(d, negative ? -x : x, computed ? d.ints({size}) : k, axis);
  if (computed) {
    Term zero = d.ints({0});
    found = {slice(found.values, zero, k, axis), slice(found.indices, zero, k, axis)};
  }
  d.output(0, negative ? -found.values : found.values);
  d.output(1, found.indices);
}

}  // namespace

void older_top_k(OlderForms& forms) { forms.add("TopK", 11, largest_and_sorted); }

}  // namespace tenon::ops

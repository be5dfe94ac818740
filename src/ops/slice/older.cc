#include <limits>

#include "ops/older_forms.h"
#include "ops/older_support.h"

namespace tenon::ops {
namespace {

Term clamped(Term x, Term low, Term high) {
  Term raised = where(less(x, low), low, x);
  return where(greater(raised, high), high, raised);
}

// The positions that a slice of an axis has.
Term positions(Decomposition& d, Term size, Term start, Term end, Term step) {
  Term zero = d.ints({0}), one = d.ints({1}), minus_one = d.ints({-1});
  Term forward = greater(step, 0);
  Term low = where(forward, zero, minus_one), high = where(forward, size, size - 1);
  auto counted = [&](Term bound) { return clamped(where(less(bound, 0), bound + size, bound), low, high); };
  Term first = counted(start), last = counted(end);
  Term distance = where(forward, last - first, first - last), stride = where(forward, step, zero - step);
  Term count = where(greater(distance, 0), divide_up(distance, stride), zero);
  return first + d.indices(count) * where(greater(count, 0), step, one);
}

// What is given for the node's axes, which may be computed, for all axes; `otherwise` where nothing is.
Term for_all_axes(Decomposition& d, Term given, int64_t otherwise) {
  const int64_t rank = d.rank(0);
  Term axes = d.has_input(3) ? cast(d.input(3), ElementType::int64) : d.indices(shape_of(d.input(1)));
  Term rows = d.add("Reshape", {axes, d.ints({-1, 1})});
  Term counted = where(less(rows, 0), rows + static_cast<double>(rank), rows);
  Term hits = cast(equal(counted, d.ints(numbers_up_to(rank))), ElementType::int64);
  Term spread = reduce("ReduceSum", unsqueeze(cast(given, ElementType::int64), {1}) * hits, d.ints({0}), false);
  Term is_given = greater(reduce("ReduceSum", hits, d.ints({0}), false), 0);
  return where(is_given, spread, d.ints({otherwise}));
}

// Axes one after the other, picked by position.
void gather_each_axis(Decomposition& d) {
  const int64_t rank = d.rank(0);
  Term x = d.input(0), starts = for_all_axes(d, d.input(1), 0),
       ends = for_all_axes(d, d.input(2), std::numeric_limits<int64_t>::max()), steps;
  if (d.has_input(4)) steps = for_all_axes(d, d.input(4), 1);
  auto part = [&](Term list, int64_t i) { return gather(list, d.ints({i}), 0); };
  for (int64_t axis = 0; axis < rank; ++axis) {
    Term step = steps ? part(steps, axis) : d.ints({1});
    x = gather(x, positions(d, size_of(x, axis), part(starts, axis), part(ends, axis), step), axis);
  }
  d.output(0, x);
}

}  // namespace

void older_slice(OlderForms& forms) { forms.add("Slice", 10, gather_each_axis); }

}  // namespace tenon::ops

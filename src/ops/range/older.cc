#include <cmath>

#include "ops/older_forms.h"
#include "ops/older_support.h"
#include "ops/operator.h"

namespace tenon::ops {
namespace {

Term length(Decomposition& d, Term start, Term limit, Term delta) {
  if (types::floats.contains(delta.type)) {
    auto exact = [](Term x) { return cast(x, ElementType::float64); };
    Term count = d.add("Ceil", {(exact(limit) - exact(start)) / exact(delta)});
    return cast(where(less(count, 0), 0, count), ElementType::int64);
  }
  Term forward = greater(delta, 0), lower = where(forward, start, limit), upper = where(forward, limit, start);
  return where(less(lower, upper), divide_up(upper - lower, abs(delta)), 0);
}

void count_and_multiply(Decomposition& d) {
  const bool floats = types::floats.contains(d.element(0));
  auto operand = [&](size_t i) { return floats ? d.wide_input(i) : cast(d.input(i), ElementType::int64); };
  Term start = operand(0), delta = operand(2);
  Term index = d.indices(length(d, start, operand(1), delta));
  d.output(0, start + cast(index, start.type) * delta);
}

}  // namespace

void older_range(OlderForms& forms) { forms.add("Range", 11, count_and_multiply); }

}  // namespace tenon::ops

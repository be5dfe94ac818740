#include "ops/older_forms.h"
#include "ops/older_support.h"
#include "ops/operator.h"

namespace tenon::ops {
namespace {

// The sum of all inputs, two at a time.
Term sum_of_inputs(Decomposition& d) {
  Term sum = d.wide_input(0);
  for (size_t i = 1; i < d.node().input_count(); ++i) sum = sum + d.wide_input(i);
  return sum;
}

void add_two_at_a_time(Decomposition& d) { d.output(0, sum_of_inputs(d)); }

void divide_by_count(Decomposition& d) {
  d.output(0, sum_of_inputs(d) / static_cast<double>(d.node().input_count()));
}

// Of integers, which older versions do not take; of floats, a NaN would be lost.
void choose_of_two(Decomposition& d) {
  if (!types::ints.contains(d.element(0))) d.give_up("before version 8 its inputs had to have one shape");
  Term best = d.input(0);
  for (size_t i = 1; i < d.node().input_count(); ++i) {
    Term next = d.input(i);
    Term is_better = d.node().op_type == "Max" ? greater(next, best) : less(next, best);
    best = where(is_better, next, best);
  }
  d.output(0, best);
}

}  // namespace

void older_variadic(OlderForms& forms) {
  forms.add("Sum", 8, add_two_at_a_time);
  forms.add("Mean", 8, divide_by_count);
  forms.add("Max", 12, choose_of_two);
  forms.add("Min", 12, choose_of_two);
}

}  // namespace tenon::ops

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

void divide_by_count(Decomposition& d) { d.output(0, sum_of_inputs(d) / static_cast<double>(d.node().input_count())); }

// All inputs with the shape of the output.
void with_one_shape(Decomposition& d) {
  const auto& shape = d.node().output(0)->type.shape;
  std::vector<int64_t> sizes;
  for (const Dim& dim : shape ? *shape : SymbolicShape{Dim::unknown()}) {
    if (!dim.is_known()) d.give_up("the shapes of its inputs are not known");
    sizes.push_back(dim.value());
  }
  std::vector<Term> inputs;
  bool differs = false;
  for (size_t i = 0; i < d.node().input_count(); ++i) {
    const bool same = d.node().input(i)->type.shape == shape;
    inputs.push_back(same ? d.input(i) : expand(d.input(i), d.ints(sizes)));
    differs |= !same;
  }
  if (!differs) d.give_up("its inputs have one shape already");
  d.output(0, d.add(d.node().op_type, inputs));
}

// Of integers, which older versions do not take; of floats, a NaN would be lost.
void choose_of_two(Decomposition& d) {
  if (!types::ints.contains(d.element(0))) d.give_up("older versions do not take its type");
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
  for (const char* op : {"Max", "Min"}) {
    forms.add(op, 12, choose_of_two);
    forms.add(op, 8, with_one_shape);
  }
}

}  // namespace tenon::ops

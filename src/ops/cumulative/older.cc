#include "ops/older_forms.h"
#include "ops/older_support.h"

namespace tenon::ops {
namespace {

// A tensor as [outer, size, inner], of which the axis in the middle is input 1's.
Term three_axes(Decomposition& d, Term x) {
  const int64_t rank = d.rank(0);
  Term axis = d.add("Reshape", {cast(d.input(1), ElementType::int64), d.ints({1})});
  Term counted = where(less(axis, 0), axis + static_cast<double>(rank), axis);
  Term shape = shape_of(x), axes = d.ints(numbers_up_to(rank));
  Term outer = reduce("ReduceProd", where(less(axes, counted), shape, 1), d.ints({0}));
  Term inner = reduce("ReduceProd", where(greater(axes, counted), shape, 1), d.ints({0}));
  return reshape(x, concat({outer, gather(shape, counted, 0), inner}), may_be_empty(*d.node().input(0)));
}

void one_after_the_other(Decomposition& d) {
  if (d.rank(0) == 0) d.give_up("its input has no axis");
  const bool multiplies = d.node().op_type == "CumProd", exclusive = d.node().int_attribute("exclusive", 0) != 0;
  const bool is_list = d.rank(0) == 1;
  Term x = d.wide_input(0), rows = is_list ? x : three_axes(d, x), start = x.number(multiplies ? 1 : 0);
  if (!is_list) start = expand(start, concat({size_of(rows, 0), size_of(rows, 2)}));
  const auto last = d.scan(start, {rows}, is_list ? 0 : 1, [&](Term state, const std::vector<Term>& slices) {
    Term next = multiplies ? state * slices[0] : state + slices[0];
    return Decomposition::Step{next, exclusive ? state : next};
  });
  if (d.node().int_attribute("reverse", 0) != 0) {
    ir::Node& scan = *last.state.value->producer();
    scan.set_attribute({"scan_input_directions", std::vector<int64_t>{1}});
    scan.set_attribute({"scan_output_directions", std::vector<int64_t>{1}});
  }
  d.output(0, is_list ? last.result : reshape(last.result, shape_of(x), may_be_empty(*d.node().input(0))));
}

}  // namespace

void older_cumulative(OlderForms& forms) {
  forms.add("CumProd", 26, one_after_the_other);
  forms.add("CumSum", 11, one_after_the_other);
}

}  // namespace tenon::ops

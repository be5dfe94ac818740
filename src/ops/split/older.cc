#include "ops/older_forms.h"
#include "ops/older_support.h"

namespace tenon::ops {
namespace {

int64_t axis_of(const Decomposition& d) {
  const int64_t axis = d.node().int_attribute("axis", 0);
  return axis < 0 ? axis + d.rank(0) : axis;
}

// Equal parts, the last of which may be smaller, as a list of sizes.
void with_sizes(Decomposition& d) {
  if (d.has_input(1) || !d.node().attribute("num_outputs")) d.give_up("it has sizes already");
  const int64_t axis = axis_of(d), parts = d.node().int_attribute("num_outputs", 1);
  Term x = d.input(0), size = size_of(x, axis);
  Term part = divide_up(size, d.ints({parts}));
  std::vector<Term> sizes(static_cast<size_t>(parts - 1), part);
  sizes.push_back(size - part * static_cast<double>(parts - 1));
  std::vector<Term> outputs = add_with_outputs(
      d, "Split", {x, concat(sizes)}, std::vector<ElementType>(d.node().output_count(), x.type), {{"axis", axis}});
  for (size_t i = 0; i < outputs.size(); ++i) d.output(i, outputs[i]);
}

// Parts whose sizes are computed, one Slice each.
void as_slices(Decomposition& d) {
  if (!d.has_input(1)) d.give_up("its sizes are equal");
  const int64_t axis = axis_of(d);
  Term x = d.input(0), sizes = d.input(1), begin = d.ints({0});
  for (size_t i = 0; i < d.node().output_count(); ++i) {
    const auto at = static_cast<int64_t>(i);
    Term end = begin + slice(sizes, d.ints({at}), d.ints({at + 1}), 0);
    d.output(i, slice(x, begin, end, axis));
    begin = end;
  }
}

}  // namespace

void older_split(OlderForms& forms) {
  forms.add("Split", 18, with_sizes);
  forms.add("Split", 13, as_slices);
}

}  // namespace tenon::ops

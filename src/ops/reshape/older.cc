#include <algorithm>
#include <limits>

#include "ops/older_forms.h"
#include "ops/older_support.h"

namespace tenon::ops {
namespace {

// Whether 0 means the same with `allowzero` and without, in every axis where it may be. Sizes that follow from others
// are taken not to be 0.
bool zeros_are_copies(const Decomposition& d) {
  const ir::Value &before = *d.node().input(0), &after = *d.node().output(0);
  if (!after.type.shape) return false;
  const SymbolicShape& shape = *after.type.shape;
  for (size_t axis = 0; axis < shape.size(); ++axis) {
    if (shape[axis].is_known() ? !shape[axis].is(0) : !shape[axis].has_unknown()) continue;
    const bool same = before.type.shape && axis < before.type.shape->size() && shape[axis].is_known() &&
                      (*before.type.shape)[axis] == shape[axis];
    if (!same) return false;
  }
  return true;
}

// An empty tensor is given elements, so that it can take a shape without zeros, of which all are cut off again.
void cut_off_to_zero(Decomposition& d) {
  if (d.node().int_attribute("allowzero", 0) == 0) d.give_up("it is a Reshape already");
  Term x = d.input(0), shape = d.input(1);
  if (zeros_are_copies(d)) return d.output(0, d.add("Reshape", {x, shape}));
  const int64_t rank = d.known_size(1, 0);
  if (rank < 0) d.give_up("the rank of its output is not known, and its size may be 0");
  Term is_zero = equal(shape, 0);
  Term without_zeros = where(is_zero, 1, shape);
  Term any_zero = greater(reduce("ReduceSum", cast(is_zero, ElementType::int64), d.ints({0})), 0);
  Term missing = where(any_zero, reduce("ReduceProd", without_zeros, d.ints({0})), 0);
  Term added = d.add("ConstantOfShape", {missing}, {{"value", zero_element(x.type)}}, x.type);
  Term filled = concat({d.add("Reshape", {x, d.ints({-1})}), added});
  Term whole = d.add("Reshape", {filled, without_zeros});
  Term ends = where(less(shape, 0), static_cast<double>(std::numeric_limits<int64_t>::max()), shape);
  std::vector<int64_t> starts(static_cast<size_t>(rank));
  d.output(0, rank == 0 ? whole : d.add("Slice", {whole, d.ints(starts), ends, d.ints(numbers_up_to(rank))}));
}

// Which axes the output has, as truth values of `rank` axes.
int64_t axis_count(const Decomposition& d) {
  const int64_t count = d.known_rank(1) == 0 ? 1 : d.known_size(1, 0);
  if (count < 0) d.give_up("the number of its axes is not known");
  return count;
}

void squeeze_to_computed_shape(Decomposition& d) {
  if (!d.has_input(1)) d.give_up("it is a Squeeze already");
  const int64_t rank = d.rank(0), left = rank - axis_count(d);
  Term x = d.input(0);
  Term kept = true_positions(negation(axis_mask(d.input(1), rank)), left);
  Term shape = left == 0 ? d.ints({}) : gather(shape_of(x), kept, 0);
  d.output(0, reshape(x, shape, may_be_empty(*d.node().input(0))));
}

// Each axis of the output is new, or the next one of the input.
void unsqueeze_to_computed_shape(Decomposition& d) {
  const int64_t old_rank = d.rank(0), rank = old_rank + axis_count(d);
  Term x = d.input(0);
  if (old_rank == 0) return d.output(0, d.add("Reshape", {x, d.ints(std::vector<int64_t>(rank, 1))}));
  Term added = axis_mask(d.input(1), rank);
  std::vector<int64_t> up_to_here;  // of each axis, which axes are not behind it
  for (int64_t i = 0; i < rank * rank; ++i) up_to_here.push_back(i % rank <= i / rank ? 1 : 0);
  Term triangle = d.add("Reshape", {d.ints(up_to_here), d.ints({rank, rank})});
  Term kept = cast(negation(added), ElementType::int64);
  Term position = reduce("ReduceSum", triangle * kept, d.ints({1}), false) - 1;
  Term sizes = gather(shape_of(x), where(less(position, 0), 0, position), 0);
  d.output(0, reshape(x, where(added, 1, sizes), may_be_empty(*d.node().input(0))));
}

}  // namespace

void older_reshape(OlderForms& forms) {
  forms.add("Reshape", 14, cut_off_to_zero);
  forms.add("Squeeze", 13, squeeze_to_computed_shape);
  forms.add("Unsqueeze", 13, unsqueeze_to_computed_shape);
}

}  // namespace tenon::ops

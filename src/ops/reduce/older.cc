#include "ops/older_forms.h"
#include "ops/older_support.h"

namespace tenon::ops {
namespace {

Term reduce_like(Decomposition& d, Term x, const std::vector<int64_t>& axes) {
  return reduce(d.node().op_type, x, d.ints(axes), /*keep=*/false);
}

// Each axis of the input becomes two, of which one has its size and the other one size 1: the second is reduced. So
// which one it is decides, and the axes that are reduced are always the same.
Term reduce_where(Decomposition& d, Term mask, int64_t rank, bool may_be_empty) {
  Term x = d.input(0), shape = shape_of(x);
  Term pairs = concat({unsqueeze(where(mask, 1, shape), {1}), unsqueeze(where(mask, shape, 1), {1})}, 1);
  Term split = reshape(x, d.add("Reshape", {pairs, d.ints({2 * rank})}), may_be_empty);
  std::vector<int64_t> second;
  for (int64_t axis = 0; axis < rank; ++axis) second.push_back(2 * axis + 1);
  return reduce_like(d, split, second);
}

// Types that older versions do not take, as int32. Over no elements at all, that has other extremes than they have.
void extreme_of_integers(Decomposition& d) {
  const ElementType type = d.element(0);
  const bool is_bool = type == ElementType::boolean, is_signed = type == ElementType::int8;
  if (!is_bool && !is_signed && type != ElementType::uint8) d.give_up("its type is not one of 8 bits");
  const bool finds_most = d.node().op_type == "ReduceMax";
  Term found = d.add(d.node().op_type, {cast(d.input(0), ElementType::int32), d.input(1)},
                     {{"keepdims", d.node().int_attribute("keepdims", 1)},
                      {"noop_with_empty_axes", d.node().int_attribute("noop_with_empty_axes", 0)}});
  const double low = is_signed ? -128 : 0, high = is_bool ? 1 : is_signed ? 127 : 255;
  d.output(0, finds_most ? where(less(found, low), low, found) : where(greater(found, high), high, found));
}

void reduce_computed_axes(Decomposition& d) {
  const bool keep = d.node().int_attribute("keepdims", 1) != 0;
  const bool none_is_all = d.node().int_attribute("noop_with_empty_axes", 0) == 0;
  const int64_t rank = d.rank(0), count = d.has_input(1) ? d.known_size(1, 0) : 0;
  if (count == 0 && none_is_all) d.give_up("it reduces all axes already");
  if (count > 0 && d.node().input(1)->is_fixed()) d.give_up("its axes are constant already");
  if (count == 0 || rank == 0) return d.output(0, reduce_like(d, unsqueeze(d.input(0), {rank}), {rank}));
  if (count < 0 && !keep) d.give_up("the number of its axes is not known");
  const bool empty = may_be_empty(*d.node().input(0));
  Term mask = axis_mask(d.input(1), rank);
  if (none_is_all && count < 0) mask = either(mask, equal(d.add("Size", {d.input(1)}), 0));
  Term reduced = reduce_where(d, mask, rank, empty);
  if (keep) return d.output(0, reduced);
  if (count == rank) return d.output(0, d.add("Reshape", {reduced, d.ints({})}));
  Term kept = true_positions(negation(mask), rank - count);
  d.output(0, reshape(reduced, gather(shape_of(reduced), kept, 0), empty));
}

}  // namespace

void older_reduce(OlderForms& forms) {
  forms.add("ReduceSum", 13, reduce_computed_axes);
  for (const char* op : {"ReduceProd", "ReduceMax", "ReduceMin", "ReduceMean", "ReduceL1", "ReduceL2",
                         "ReduceSumSquare", "ReduceLogSum", "ReduceLogSumExp"})
    forms.add(op, 18, reduce_computed_axes);
  for (const char* op : {"ReduceMax", "ReduceMin"}) forms.add(op, 20, extreme_of_integers);
}

}  // namespace tenon::ops

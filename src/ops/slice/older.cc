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

// Axes one after the other, picked by position.
void gather_each_axis(Decomposition& d) {
  const int64_t rank = d.rank(0), count = d.known_size(1, 0);
  if (count < 0) d.give_up("the number of its bounds is not known");
  std::vector<int64_t> axes = numbers_up_to(count);
  if (d.has_input(3)) {
    const ir::Value& list = *d.node().input(3);
    if (!list.is_fixed()) d.give_up("its axes are computed");
    const Tensor& tensor = list.constant()->tensor;
    for (size_t i = 0; i < axes.size(); ++i)
      axes[i] = tensor.type() == ElementType::int32 ? tensor.data<int32_t>()[i] : tensor.data<int64_t>()[i];
  }
  Term x = d.input(0);
  auto bound = [&](size_t input, int64_t i) {
    return slice(cast(d.input(input), ElementType::int64), d.ints({i}), d.ints({i + 1}), 0);
  };
  for (int64_t i = 0; i < count; ++i) {
    const int64_t given = axes[static_cast<size_t>(i)], axis = given < 0 ? given + rank : given;
    Term step = d.has_input(4) ? bound(4, i) : d.ints({1});
    x = gather(x, positions(d, size_of(x, axis), bound(1, i), bound(2, i), step), axis);
  }
  d.output(0, x);
}

}  // namespace

void older_slice(OlderForms& forms) { forms.add("Slice", 10, gather_each_axis); }

}  // namespace tenon::ops

#include "ops/older_forms.h"
#include "ops/older_support.h"

namespace tenon::ops {
namespace {

// Pads of the node's axes, which may be computed, as pads of all axes: those at the beginning, then those at the end.
Term pads_of_all_axes(Decomposition& d) {
  Term pads = d.input(1);
  if (!d.has_input(3)) return pads;
  const int64_t rank = d.rank(0);
  Term axes = d.add("Reshape", {cast(d.input(3), ElementType::int64), d.ints({-1, 1})});
  Term counted = where(less(axes, 0), axes + static_cast<double>(rank), axes);
  Term hits = cast(equal(counted, d.ints(numbers_up_to(rank))), ElementType::int64);
  // [2, axes, 1] and [axes, rank]
  Term by_axis = d.add("Reshape", {pads, concat({d.ints({2}), shape_of(pads) / 2, d.ints({1})})});
  Term all = reduce("ReduceSum", by_axis * hits, d.ints({1}), false);
  return d.add("Reshape", {all, d.ints({2 * rank})});
}

void pad_all_axes(Decomposition& d) {
  if (!d.has_input(3)) d.give_up("it pads all axes already");
  d.output(0, d.add("Pad", {d.input(0), pads_of_all_axes(d), d.input(2)},
                    {{"mode", d.node().string_attribute("mode", "constant")}}));
}

Term modulo(Term a, Term b) { return a.decomposition->add("Mod", {a, b}); }

// Where in an axis of `size` elements to read what is padded.
Term place(const std::string& mode, Term at, Term size) {
  if (mode == "wrap") return modulo(at, size);
  Term last = size - 1;
  if (mode != "reflect") return where(less(at, 0), 0, where(greater(at, last), last, at));
  Term period = where(greater(last, 0), last * 2, 1), within = modulo(at, period);
  return where(greater(within, last), period - within, within);
}

// Reads every element from where the mode says, one axis after the other.
void gather_each_axis(Decomposition& d) {
  const std::string mode = d.node().string_attribute("mode", "constant");
  const int64_t rank = d.rank(0);
  Term x = d.input(0), pads = pads_of_all_axes(d);
  Term value = !d.has_input(2) ? x.number(0) : d.add("Reshape", {d.input(2), d.ints({})});
  auto pad = [&](int64_t i) { return slice(pads, d.ints({i}), d.ints({i + 1}), 0); };
  for (int64_t axis = 0; axis < rank; ++axis) {
    Term size = size_of(x, axis), begin = pad(axis);
    Term at = d.indices(size + begin + pad(axis + rank)) - begin;
    x = gather(x, place(mode, at, size), axis);
    if (mode != "constant") continue;
    Term inside = both(greater(at, -1), less(at, size));
    std::vector<int64_t> lined_up;
    for (int64_t behind = 1; behind < rank - axis; ++behind) lined_up.push_back(behind);
    x = where(lined_up.empty() ? inside : unsqueeze(inside, lined_up), x, value);
  }
  d.output(0, x);
}

}  // namespace

void older_pad(OlderForms& forms) {
  forms.add("Pad", 11, gather_each_axis);
  forms.add("Pad", 19, [](Decomposition& d) {
    const bool wraps = d.node().string_attribute("mode", "constant") == "wrap";
    wraps ? gather_each_axis(d) : pad_all_axes(d);
  });
}

}  // namespace tenon::ops

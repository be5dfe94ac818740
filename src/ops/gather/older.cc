#include "ops/older_forms.h"
#include "ops/older_support.h"

namespace tenon::ops {
namespace {

// Indices that count from the end when negative, from the front.
Term from_front(Term indices, Term size) { return where(less(indices, 0), indices + size, indices); }

// A list, lined up with axis `axis` of `rank`.
Term lined_up(Term list, int64_t axis, int64_t rank) {
  std::vector<int64_t> behind;
  for (int64_t i = 1; i < rank - axis; ++i) behind.push_back(i);
  return behind.empty() ? list : unsqueeze(list, behind);
}

// Picks elements of the flat tensor.
void gather_flat_elements(Decomposition& d) {
  const int64_t rank = d.rank(0), given = d.node().int_attribute("axis", 0), axis = given < 0 ? given + rank : given;
  Term x = d.input(0), indices = cast(d.input(1), ElementType::int64), position;
  for (int64_t i = 0; i < rank; ++i) {
    Term size = size_of(x, i);
    Term at = i == axis ? from_front(indices, size) : lined_up(d.indices(size_of(indices, i)), i, rank);
    position = position ? position * size + at : at;
  }
  d.output(0, gather(d.add("Reshape", {x, d.ints({-1})}), position, 0));
}

// Picks rows of the tensor whose indexed axes are one.
void gather_rows(Decomposition& d) {
  const int64_t depth = d.known_size(1, -1), batch = d.node().int_attribute("batch_dims", 0);
  const int64_t rank = d.rank(0), places = d.rank(1) - 1;
  if (depth < 0) d.give_up("the number of axes that its indices speak of is not known");
  Term x = d.input(0), indices = d.input(1), position;
  for (int64_t i = 0; i < batch + depth; ++i) {
    Term size = size_of(x, i);
    Term at =
        i < batch
            ? lined_up(d.indices(size), i, places)
            : from_front(gather(indices, d.number(static_cast<double>(i - batch), ElementType::int64), places), size);
    position = position ? position * size + at : at;
  }
  Term rows = d.ints({-1});
  if (batch + depth < rank) rows = concat({rows, shape_of(x, batch + depth)});
  d.output(0, gather(d.add("Reshape", {x, rows}), position, 0));
}

}  // namespace

void older_gather(OlderForms& forms) {
  forms.add("GatherElements", 11, gather_flat_elements);
  forms.add("GatherND", 12, gather_rows);
}

}  // namespace tenon::ops

#include "ops/older_forms.h"
#include "ops/older_support.h"
#include "ops/operator.h"

namespace tenon::ops {
namespace {

Term combined(const std::string& reduction, Term a, Term b) {
  if (reduction == "add") return a + b;
  if (reduction == "mul") return a * b;
  return reduction == "max" ? max(a, b) : min(a, b);
}

// One update after the other, each of which reads what those before it left.
void one_update_at_a_time(Decomposition& d) {
  const std::string reduction = d.node().string_attribute("reduction", "none");
  if (reduction == "none") d.give_up("it is a ScatterND already");
  Term data = d.wide_input(0), updates = d.wide_input(2);
  if (!types::numbers.contains(data.type)) d.give_up("elements of this type are not computed with");
  const int64_t depth = d.known_size(1, -1), rank = d.rank(1), data_rank = d.rank(0);
  if (depth < 0) d.give_up("the number of axes that its indices speak of is not known");
  Term rows = d.add("Reshape", {d.input(1), d.ints({-1, depth})});
  Term shape = d.ints({-1});
  if (depth < data_rank) shape = concat({shape, shape_of(updates, rank - 1)});
  const auto last =
      d.scan(data, {rows, d.add("Reshape", {updates, shape})}, 0, [&](Term state, const std::vector<Term>& slices) {
        Term at = unsqueeze(slices[0], {0}), update = unsqueeze(slices[1], {0});
        Term old = d.add("GatherND", {state, at});
        Term next = d.add("ScatterND", {state, at, combined(reduction, old, update)});
        return Decomposition::Step{next, slices[0]};
      });
  d.output(0, last.state);
}

// The positions along each axis of the elements that ScatterElements writes, as a ScatterND wants them.
void by_coordinates(Decomposition& d) {
  const std::string reduction = d.node().string_attribute("reduction", "none");
  const int64_t rank = d.rank(0), given = d.node().int_attribute("axis", 0), axis = given < 0 ? given + rank : given;
  Term data = d.input(0), indices = cast(d.input(1), ElementType::int64), shape = shape_of(indices);
  std::vector<Term> coordinates;
  for (int64_t i = 0; i < rank; ++i) {
    Term at = where(less(indices, 0), indices + size_of(data, axis), indices);
    if (i != axis) {
      std::vector<int64_t> behind;
      for (int64_t k = 1; k < rank - i; ++k) behind.push_back(k);
      Term along = d.indices(size_of(indices, i));
      at = expand(behind.empty() ? along : unsqueeze(along, behind), shape);
    }
    coordinates.push_back(unsqueeze(at, {rank}));
  }
  d.output(0, d.add("ScatterND", {data, concat(coordinates, rank), d.input(2)}, {{"reduction", reduction}}));
}

// Elements of the flat tensor.
void scatter_flat(Decomposition& d) {
  if (d.node().string_attribute("reduction", "none") != "none") d.give_up("its updates are combined");
  const int64_t depth = d.known_size(1, -1), rank = d.rank(0), places = d.rank(1) - 1;
  if (depth < 0) d.give_up("the number of axes that its indices speak of is not known");
  Term data = d.input(0), indices = d.input(1), position, flat = d.ints({-1});
  for (int64_t i = 0; i < depth; ++i) {
    Term size = size_of(data, i), at = gather(indices, d.number(static_cast<double>(i), ElementType::int64), places);
    at = where(less(at, 0), at + size, at);
    position = position ? position * size + at : at;
  }
  position = d.add("Reshape", {position, d.ints({-1, 1})});
  if (depth < rank) {
    Term row = reduce("ReduceProd", shape_of(data, depth), d.ints({0}));
    position = position * row + d.indices(row);
  }
  Term written = d.add("ScatterElements", {d.add("Reshape", {data, flat}), d.add("Reshape", {position, flat}),
                                           d.add("Reshape", {d.input(2), flat})});
  d.output(0, reshape(written, shape_of(data), may_be_empty(*d.node().input(0))));
}

void write_along_axis(Decomposition& d) {
  const int64_t rank = d.rank(0), given = d.node().int_attribute("axis", -2), axis = given < 0 ? given + rank : given;
  Term cache = d.input(0), update = d.input(1);
  Term at = d.indices(size_of(update, axis));
  if (d.has_input(2)) at = unsqueeze(d.input(2), {1}) + at;
  if (d.node().string_attribute("mode", "linear") == "circular") at = d.add("Mod", {at, size_of(cache, axis)});
  // [batch, 1 …, sequence, 1 …]
  std::vector<int64_t> ones;
  const int64_t first = d.has_input(2) ? 1 : 0;
  for (int64_t i = first; i < rank; ++i) {
    if (i != axis) ones.push_back(i);
  }
  at = ones.empty() ? at : unsqueeze(at, ones);
  d.output(0, d.add("ScatterElements", {cache, expand(at, shape_of(update)), update}, {{"axis", axis}}));
}

}  // namespace

void older_scatter(OlderForms& forms) {
  forms.add("ScatterND", 18, one_update_at_a_time);
  forms.add("ScatterND", 11, scatter_flat);
  forms.add("ScatterElements", 18, by_coordinates);
  forms.add("TensorScatter", 24, write_along_axis);
}

}  // namespace tenon::ops

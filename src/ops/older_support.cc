#include "ops/older_support.h"

#include <algorithm>
#include <cstring>
#include <numeric>

namespace tenon::ops {

std::vector<int64_t> numbers_up_to(int64_t count) {
  std::vector<int64_t> numbers(static_cast<size_t>(count));
  std::iota(numbers.begin(), numbers.end(), 0);
  return numbers;
}

Term axis_mask(Term axes, int64_t rank) {
  Decomposition& d = *axes.decomposition;
  Term list = reshape(cast(axes, ElementType::int64), d.ints({-1, 1}), /*may_be_empty=*/false);
  Term counted = where(less(list, 0), list + static_cast<double>(rank), list);
  Term hits = cast(equal(counted, d.ints(numbers_up_to(rank))), ElementType::int64);
  return greater(reduce("ReduceSum", hits, d.ints({0}), false), 0);
}

Term true_positions(Term mask, int64_t how_many) {
  Decomposition& d = *mask.decomposition;
  Term found = d.add("NonZero", {cast(mask, ElementType::int64)}, {}, ElementType::int64);
  return reshape(found, d.ints({how_many}), /*may_be_empty=*/how_many == 0);
}

bool may_be_empty(const ir::Value& value) {
  if (!value.type.shape) return true;
  return std::ranges::any_of(*value.type.shape, [](const Dim& dim) { return dim.is(0) || dim.has_unknown(); });
}

Term reshape(Term x, Term shape, bool may_be_empty) {
  return may_be_empty ? reshape(x, shape) : x.decomposition->add("Reshape", {x, shape});
}

Tensor zero_element(ElementType type) {
  Tensor zero(type, Shape{1});
  if (type != ElementType::string) std::memset(zero.mutable_raw(), 0, static_cast<size_t>(zero.bytes()));
  return zero;
}

Term divide_up(Term a, Term b) { return (a + b - 1) / b; }

std::vector<Term> add_with_outputs(Decomposition& d, const char* op, const std::vector<Term>& inputs,
                                   const std::vector<ElementType>& outputs, std::initializer_list<Setting> attributes) {
  std::vector<ir::Value*> values;
  for (const Term& term : inputs) values.push_back(term.value);
  while (!values.empty() && !values.back()) values.pop_back();
  ir::Node& node = d.add_node(op, values);
  for (const Setting& setting : attributes)
    std::visit([&](const auto& value) { node.set_attribute(ir::Attribute(setting.name, value)); }, setting.value);
  std::vector<Term> terms;
  for (ElementType type : outputs) terms.push_back({&d, d.add_output(node), type});
  return terms;
}

}  // namespace tenon::ops

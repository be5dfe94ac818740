#include <algorithm>

#include "ops/einsum/equation.h"
#include "ops/older_forms.h"
#include "ops/older_support.h"

namespace tenon::ops {
namespace {

Term lined_up(Term list, size_t axis, size_t rank) {
  std::vector<int64_t> behind;
  for (size_t i = 1; i < rank - axis; ++i) behind.push_back(static_cast<int64_t>(i));
  return behind.empty() ? list : unsqueeze(list, behind);
}

// Of axes with one label, all but the first go: what is off the diagonal becomes 0 and is summed up.
Term without_repeated(Term x, std::vector<int>& labels) {
  Decomposition& d = *x.decomposition;
  for (size_t axis = 0; axis < labels.size();) {
    const auto first = static_cast<size_t>(std::ranges::find(labels, labels[axis]) - labels.begin());
    if (first == axis) {
      ++axis;
      continue;
    }
    Term numbers = d.indices(size_of(x, static_cast<int64_t>(axis)));
    Term diagonal = equal(lined_up(numbers, first, labels.size()), lined_up(numbers, axis, labels.size()));
    x = reduce("ReduceSum", where(diagonal, x, 0), d.ints({static_cast<int64_t>(axis)}), false);
    labels.erase(labels.begin() + static_cast<int64_t>(axis));
  }
  return x;
}

// The tensor with one axis for each of `all` labels, of size 1 where it has none.
Term with_axes(Term x, const std::vector<int>& labels, const std::vector<int>& all) {
  std::vector<int64_t> order, missing;
  for (size_t i = 0; i < all.size(); ++i) {
    auto at = std::ranges::find(labels, all[i]);
    if (at == labels.end())
      missing.push_back(static_cast<int64_t>(i));
    else
      order.push_back(at - labels.begin());
  }
  if (!std::ranges::is_sorted(order)) x = transpose(x, order);
  return missing.empty() ? x : unsqueeze(x, missing);
}

void multiply_and_sum(Decomposition& d) {
  std::vector<int> ranks;
  for (size_t i = 0; i < d.node().input_count(); ++i) ranks.push_back(d.rank(i));
  EinsumEquation equation = EinsumEquation::parse(d.node().string_attribute("equation", ""), ranks);
  std::vector<Term> inputs;
  std::vector<int> all = equation.output;
  for (size_t i = 0; i < ranks.size(); ++i) {
    inputs.push_back(without_repeated(d.wide_input(i), equation.inputs[i]));
    for (int label : equation.inputs[i]) {
      if (std::ranges::find(all, label) == all.end()) all.push_back(label);
    }
  }
  Term product;
  for (size_t i = 0; i < ranks.size(); ++i) {
    Term factor = with_axes(inputs[i], equation.inputs[i], all);
    product = product ? product * factor : factor;
  }
  std::vector<int64_t> summed;
  for (size_t i = equation.output.size(); i < all.size(); ++i) summed.push_back(static_cast<int64_t>(i));
  d.output(0, summed.empty() ? product : reduce("ReduceSum", product, d.ints(summed), false));
}

}  // namespace

void older_einsum(OlderForms& forms) { forms.add("Einsum", 28, multiply_and_sum); }

}  // namespace tenon::ops

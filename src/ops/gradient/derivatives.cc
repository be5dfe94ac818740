#include "ops/gradient/derivatives.h"

#include <algorithm>

namespace tenon::ops {

Term Differentiated::term(Decomposition& d, ir::Value* value) {
  if (!value) return {};
  if (value->type.element == ElementType::undefined) d.give_up("the element type of a tensor is not known");
  return {&d, value, value->type.element};
}

int Differentiated::rank(size_t i) const {
  if (!node.input(i)->type.shape) d.give_up("the rank of a tensor is not known");
  return static_cast<int>(node.input(i)->type.shape->size());
}

Term sum_to_shape(Decomposition& d, Term gradient, Term like) {
  Term wanted = shape_of(like), actual = shape_of(gradient);
  Term missing = shape_of(actual) - shape_of(wanted);
  Term aligned = d.add("Concat", {d.add("Expand", {d.ints({1}), missing}), wanted}, {{"axis", 0}});
  Term broadcast = negation(equal(aligned, actual));
  Term axes = reshape(d.add("NonZero", {broadcast}, {}, ElementType::int64), d.ints({-1}));
  Term sum = d.add("ReduceSum", {gradient, axes}, {{"keepdims", 1}, {"noop_with_empty_axes", 1}});
  return d.add("Reshape", {sum, wanted}, {{"allowzero", 1}});
}

namespace {

Term same(const Differentiated& n) { return n.gradient; }
Term negative(const Differentiated& n) { return -n.gradient; }
Term in_shape_of_input(const Differentiated& n) {
  return n.d.add("Reshape", {n.gradient, shape_of(n.x(0))}, {{"allowzero", 1}});
}

Term transposed(const Differentiated& n) {
  const std::vector<int64_t> perm = n.node.ints_attribute("perm");
  if (perm.empty()) return n.d.add("Transpose", {n.gradient});
  std::vector<int64_t> inverse(perm.size());
  for (size_t i = 0; i < perm.size(); ++i) inverse.at(static_cast<size_t>(perm[i])) = static_cast<int64_t>(i);
  return n.d.add("Transpose", {n.gradient}, {{"perm", inverse}});
}

Term of_reduce_sum(const Differentiated& n) {
  Term gradient = n.gradient;
  if (n.x(1) && n.node.int_attribute("keepdims", 1) == 0) gradient = n.d.add("Unsqueeze", {gradient, n.x(1)});
  return n.d.add("Expand", {gradient, shape_of(n.x(0))});
}

// The operands of a MatMul as matrices: a vector on the left is a row, one on the right a column.
struct Matrices {
  Term a, b, gradient;
  int a_rank, b_rank;

  explicit Matrices(const Differentiated& n)
      : a(n.x(0)), b(n.x(1)), gradient(n.gradient), a_rank(n.rank(0)), b_rank(n.rank(1)) {
    auto with_axis = [&](Term x, int64_t axis) { return n.d.add("Unsqueeze", {x, n.d.ints({axis})}); };
    if (b_rank == 1) {
      b = with_axis(b, 1);
      gradient = with_axis(gradient, -1);
      b_rank = 2;
    }
    if (a_rank == 1) {
      a = with_axis(a, 0);
      gradient = with_axis(gradient, -2);
      a_rank = 2;
    }
  }
};

Term with_last_axes_exchanged(Decomposition& d, Term matrix, int rank) {
  std::vector<int64_t> perm(static_cast<size_t>(rank));
  for (size_t i = 0; i < perm.size(); ++i) perm[i] = static_cast<int64_t>(i);
  std::swap(perm[perm.size() - 1], perm[perm.size() - 2]);
  return d.add("Transpose", {matrix}, {{"perm", perm}});
}

Term of_left_matrix(const Differentiated& n) {
  const Matrices m(n);
  Term result = n.d.add("MatMul", {m.gradient, with_last_axes_exchanged(n.d, m.b, m.b_rank)});
  return sum_to_shape(n.d, result, n.x(0));
}

Term of_right_matrix(const Differentiated& n) {
  const Matrices m(n);
  Term result = n.d.add("MatMul", {with_last_axes_exchanged(n.d, m.a, m.a_rank), m.gradient});
  if (n.rank(1) == 1) result = n.d.add("Squeeze", {result, n.d.ints({-1})});
  return sum_to_shape(n.d, result, n.x(1));
}

// The operators that the rules themselves write are among them, so that gradients can be differentiated again.
const std::vector<DerivativeRule>& rules() {
  using N = const Differentiated&;
  static const std::vector<DerivativeRule> all = {
      {"Add", {same, same}, true},
      {"Div", {[](N n) { return n.gradient / n.x(1); }, [](N n) { return -(n.gradient * n.y() / n.x(1)); }}, true},
      {"Exp", {[](N n) { return n.gradient * n.y(); }}},
      {"Expand", {[](N n) { return sum_to_shape(n.d, n.gradient, n.x(0)); }, nullptr}},
      {"Flatten", {in_shape_of_input}},
      {"Identity", {same}},
      {"Log", {[](N n) { return n.gradient / n.x(0); }}},
      {"MatMul", {of_left_matrix, of_right_matrix}},
      {"Mul", {[](N n) { return n.gradient * n.x(1); }, [](N n) { return n.gradient * n.x(0); }}, true},
      {"Neg", {negative}},
      {"ReduceSum", {of_reduce_sum, nullptr}},
      {"Relu", {[](N n) { return where(greater(n.x(0), 0), n.gradient, 0); }}},
      {"Reshape", {in_shape_of_input, nullptr}},
      {"Sigmoid", {[](N n) { return n.gradient * (n.y() * (1 - n.y())); }}},
      {"Sqrt", {[](N n) { return n.gradient / (n.y() + n.y()); }}},
      {"Squeeze", {in_shape_of_input, nullptr}},
      {"Sub", {same, negative}, true},
      {"Tanh", {[](N n) { return n.gradient * (1 - n.y() * n.y()); }}},
      {"Transpose", {transposed}},
      {"Unsqueeze", {in_shape_of_input, nullptr}},
      {"Where",
       {nullptr, [](N n) { return where(n.x(0), n.gradient, 0); }, [](N n) { return where(n.x(0), 0, n.gradient); }},
       true},
  };
  return all;
}

}  // namespace

const DerivativeRule* find_derivative(const ir::Node& node) {
  if (!node.domain.empty()) return nullptr;
  auto found = std::ranges::find_if(rules(), [&](const DerivativeRule& rule) { return rule.op == node.op_type; });
  return found == rules().end() ? nullptr : &*found;
}

std::string differentiable_operators() {
  std::string text;
  for (const DerivativeRule& rule : rules()) text += (text.empty() ? "" : ", ") + std::string(rule.op);
  return text;
}

}  // namespace tenon::ops

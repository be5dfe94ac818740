#include "ops/gradient/derivatives.h"

#include <algorithm>

namespace tenon::ops {

ir::Value* Differentiated::number(double value, const ir::Value* like) const {
  if (like->type.element == ElementType::undefined) d.give_up("the element type of a tensor is not known");
  return d.number(value, like->type.element);
}

int Differentiated::rank(const ir::Value* value) const {
  if (!value->type.shape) d.give_up("the rank of a tensor is not known");
  return static_cast<int>(value->type.shape->size());
}

ir::Value* sum_to_shape(const Differentiated& n, ir::Value* gradient, ir::Value* like) {
  ir::Value *wanted = n.add("Shape", {like}), *actual = n.add("Shape", {gradient});
  ir::Value* missing = n.add("Sub", {n.add("Size", {actual}), n.add("Size", {wanted})});
  ir::Value* ones = n.add("Expand", {n.d.ints({1}), n.add("Reshape", {missing, n.d.ints({1})})});
  ir::Value* aligned = n.add("Concat", {ones, wanted}, {{"axis", 0}});
  ir::Value* broadcast = n.add("Not", {n.add("Equal", {aligned, actual})});
  ir::Value* axes = n.add("Reshape", {n.add("NonZero", {broadcast}), n.d.ints({-1})});
  ir::Value* sum = n.add("ReduceSum", {gradient, axes}, {{"keepdims", 1}, {"noop_with_empty_axes", 1}});
  return n.add("Reshape", {sum, wanted}, {{"allowzero", 1}});
}

namespace {

ir::Value* same(const Differentiated& n) { return n.gradient; }
ir::Value* negative(const Differentiated& n) { return n.add("Neg", {n.gradient}); }
ir::Value* in_shape_of_input(const Differentiated& n) {
  return n.add("Reshape", {n.gradient, n.add("Shape", {n.x(0)})}, {{"allowzero", 1}});
}

ir::Value* transposed(const Differentiated& n) {
  const std::vector<int64_t> perm = n.node.ints_attribute("perm");
  if (perm.empty()) return n.add("Transpose", {n.gradient});
  std::vector<int64_t> inverse(perm.size());
  for (size_t i = 0; i < perm.size(); ++i) inverse.at(static_cast<size_t>(perm[i])) = static_cast<int64_t>(i);
  return n.add("Transpose", {n.gradient}, {{"perm", inverse}});
}

ir::Value* of_reduce_sum(const Differentiated& n) {
  ir::Value* gradient = n.gradient;
  if (n.x(1) && n.node.int_attribute("keepdims", 1) == 0) gradient = n.add("Unsqueeze", {gradient, n.x(1)});
  return n.add("Expand", {gradient, n.add("Shape", {n.x(0)})});
}

// The operands of a MatMul as matrices: a vector on the left is a row, one on the right a column.
struct Matrices {
  ir::Value *a, *b, *gradient;
  int a_rank, b_rank;

  explicit Matrices(const Differentiated& n)
      : a(n.x(0)), b(n.x(1)), gradient(n.gradient), a_rank(n.rank(a)), b_rank(n.rank(b)) {
    if (b_rank == 1) {
      b = n.add("Unsqueeze", {b, n.d.ints({1})});
      gradient = n.add("Unsqueeze", {gradient, n.d.ints({-1})});
      b_rank = 2;
    }
    if (a_rank == 1) {
      a = n.add("Unsqueeze", {a, n.d.ints({0})});
      gradient = n.add("Unsqueeze", {gradient, n.d.ints({-2})});
      a_rank = 2;
    }
  }
};

ir::Value* with_last_axes_exchanged(const Differentiated& n, ir::Value* matrix, int rank) {
  std::vector<int64_t> perm(static_cast<size_t>(rank));
  for (size_t i = 0; i < perm.size(); ++i) perm[i] = static_cast<int64_t>(i);
  std::swap(perm[perm.size() - 1], perm[perm.size() - 2]);
  return n.add("Transpose", {matrix}, {{"perm", perm}});
}

ir::Value* of_left_matrix(const Differentiated& n) {
  const Matrices m(n);
  ir::Value* result = n.add("MatMul", {m.gradient, with_last_axes_exchanged(n, m.b, m.b_rank)});
  return sum_to_shape(n, result, n.x(0));
}

ir::Value* of_right_matrix(const Differentiated& n) {
  const Matrices m(n);
  ir::Value* result = n.add("MatMul", {with_last_axes_exchanged(n, m.a, m.a_rank), m.gradient});
  if (n.rank(n.x(1)) == 1) result = n.add("Squeeze", {result, n.d.ints({-1})});
  return sum_to_shape(n, result, n.x(1));
}

// The operators that the rules themselves write are among them, so that gradients can be differentiated again.
const std::vector<DerivativeRule>& rules() {
  using N = const Differentiated&;
  static const std::vector<DerivativeRule> all = {
      {"Add", {same, same}, true},
      {"Div",
       {[](N n) {
          return n.add("Div", {n.gradient, n.x(1)});
        },
        [](N n) {
          return n.add("Neg", {n.add("Div", {n.add("Mul", {n.gradient, n.y()}), n.x(1)})});
        }},
       true},
      {"Exp", {[](N n) {
         return n.add("Mul", {n.gradient, n.y()});
       }}},
      {"Expand", {[](N n) { return sum_to_shape(n, n.gradient, n.x(0)); }, nullptr}},
      {"Flatten", {in_shape_of_input}},
      {"Identity", {same}},
      {"Log", {[](N n) {
         return n.add("Div", {n.gradient, n.x(0)});
       }}},
      {"MatMul", {of_left_matrix, of_right_matrix}},
      {"Mul",
       {[](N n) {
          return n.add("Mul", {n.gradient, n.x(1)});
        },
        [](N n) {
          return n.add("Mul", {n.gradient, n.x(0)});
        }},
       true},
      {"Neg", {negative}},
      {"ReduceSum", {of_reduce_sum, nullptr}},
      {"Relu", {[](N n) {
         ir::Value* zero = n.number(0, n.x(0));
         return n.add("Where", {n.add("Greater", {n.x(0), zero}), n.gradient, zero});
       }}},
      {"Reshape", {in_shape_of_input, nullptr}},
      {"Sigmoid", {[](N n) {
         ir::Value* slope = n.add("Mul", {n.y(), n.add("Sub", {n.number(1, n.x(0)), n.y()})});
         return n.add("Mul", {n.gradient, slope});
       }}},
      {"Sqrt", {[](N n) {
         return n.add("Div", {n.gradient, n.add("Add", {n.y(), n.y()})});
       }}},
      {"Squeeze", {in_shape_of_input, nullptr}},
      {"Sub", {same, negative}, true},
      {"Tanh", {[](N n) {
         ir::Value* slope = n.add("Sub", {n.number(1, n.x(0)), n.add("Mul", {n.y(), n.y()})});
         return n.add("Mul", {n.gradient, slope});
       }}},
      {"Transpose", {transposed}},
      {"Unsqueeze", {in_shape_of_input, nullptr}},
      {"Where",
       {nullptr,
        [](N n) {
          return n.add("Where", {n.x(0), n.gradient, n.number(0, n.x(1))});
        },
        [](N n) {
          return n.add("Where", {n.x(0), n.number(0, n.x(1)), n.gradient});
        }},
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

#include "ops/adapters.h"
#include "ops/decomposition.h"
#include "ops/inference.h"
#include "ops/operator.h"

namespace tenon::ops {
namespace {

using ir::AttributeKind;

// The axes to reduce: the second input, or all (none with noop_with_empty_axes) when it is left out or empty.
std::optional<std::vector<int>> reduced_axes(const Inference& i) {
  std::optional<std::vector<int64_t>> listed;
  if (!i.has_input(1))
    listed.emplace();
  else
    listed = i.ints(1);
  if (!listed) return std::nullopt;
  std::vector<int> axes = i.axes(*listed, i.rank(0));
  if (axes.empty() && i.node().int_attribute("noop_with_empty_axes", 0) == 0) {
    for (int axis = 0; axis < i.rank(0); ++axis) axes.push_back(axis);
  }
  return axes;
}

using Combine = Dim (*)(const Dim&, const Dim&);

void infer_reduce(Inference& i, Combine values) {
  if (i.has_shape(1) && i.rank(1) > 1) i.fail("the axes must be a list, they have rank {}", i.rank(1));
  if (!i.has_shape(0)) return i.output(0, i.element(0), std::nullopt);
  bool keep = i.node().int_attribute("keepdims", 1) != 0;
  auto axes = reduced_axes(i);
  if (!axes) {
    if (!keep) return i.output(0, i.element(0), std::nullopt);
    SymbolicShape shape;
    for (int axis = 0; axis < i.rank(0); ++axis) shape.push_back(Dim::unknown());
    return i.output(0, i.element(0), std::move(shape));
  }
  std::vector<bool> reduced(static_cast<size_t>(i.rank(0)));
  for (int axis : *axes) reduced[static_cast<size_t>(axis)] = true;
  SymbolicShape shape;
  for (size_t axis = 0; axis < reduced.size(); ++axis) {
    if (!reduced[axis])
      shape.push_back(i.shape(0)[axis]);
    else if (keep)
      shape.push_back(Dim(1));
  }
  i.output(0, i.element(0), std::move(shape));
  if (!values || reduced.size() > 1) return;
  auto content = i.followed_values(0);
  if (!content || content->empty() || content->size() > 64) return;
  if (axes->empty()) return i.output_values(0, std::move(*content));
  Dim result = (*content)[0];
  for (size_t k = 1; k < content->size(); ++k) result = values(result, (*content)[k]);
  i.output_values(0, {result});
}

void axes_to_input(ir::Node& node) { ints_attribute_to_input(node, "axes", 1); }

// The reduction `op` of x over the node's axes.
Term reduce_like(Decomposition& d, const char* op, Term x, bool keep) {
  return d.add(
      op, {x, d.input(1)},
      {{"keepdims", keep ? 1 : 0}, {"noop_with_empty_axes", d.node().int_attribute("noop_with_empty_axes", 0)}});
}

Term sum(Decomposition& d, Term x) {
  return reduce_like(d, "ReduceSum", x, d.node().int_attribute("keepdims", 1) != 0);
}

void decompose_l1(Decomposition& d) { d.output(0, sum(d, abs(d.wide_input(0)))); }

void decompose_sum_square(Decomposition& d) {
  Term x = d.wide_input(0);
  d.output(0, sum(d, x * x));
}

// The input for roots and logarithms, which integers have none of.
Term real_input(Decomposition& d) {
  Term x = d.wide_input(0);
  return types::floats.contains(x.type) ? x : cast(x, ElementType::float64);
}

void decompose_l2(Decomposition& d) {
  Term x = real_input(d);
  d.output(0, sqrt(sum(d, x * x)));
}

void decompose_log_sum(Decomposition& d) { d.output(0, log(sum(d, real_input(d)))); }

// The largest element is taken out of the sum, so that it does not overflow; one that is infinite stays.
void decompose_log_sum_exp(Decomposition& d) {
  Term x = real_input(d);
  Term largest = reduce_like(d, "ReduceMax", x, true);
  Term finite = where(d.add("IsInf", {largest}, {}, ElementType::boolean), 0, largest);
  // A sum over axes of size 1 is there to drop them.
  d.output(0, log(sum(d, exp(x - finite))) + sum(d, finite));
}

std::string axes_to_attribute(ir::Node& node) {
  const ir::Value* axes = node.input(1);
  const bool none = !axes || (axes->type.shape && axes->type.shape->size() == 1 && (*axes->type.shape)[0].is(0));
  if (none && node.int_attribute("noop_with_empty_axes", 0) != 0) return "it reduces no axis";
  if (none) node.remove_trailing_inputs(1);
  if (std::string reason = ints_input_to_attribute(node, 1, "axes"); !reason.empty()) return reason;
  node.remove_attribute("noop_with_empty_axes");
  return {};
}

}  // namespace

void define_reduce(OperatorList& list) {
  constexpr TypeSet summable =
      types::floats | TypeSet{ElementType::int32, ElementType::int64, ElementType::uint32, ElementType::uint64};
  constexpr TypeSet comparable = summable | TypeSet{ElementType::int8, ElementType::uint8, ElementType::boolean};
  auto add = [&](const char* name, std::vector<int> versions, TypeSet types, Combine values = nullptr) -> Operator& {
    int axes_became_input = versions.size() == 3 ? 13 : 18;
    return list.add(name, std::move(versions))
        .input("data", "T")
        .optional_input("axes", TypeSet{ElementType::int64})
        .output("reduced", "T")
        .types("T", types)
        .attribute("keepdims", AttributeKind::int_)
        .attribute("noop_with_empty_axes", AttributeKind::int_)
        .infer([values](Inference& i) { infer_reduce(i, values); })
        .lift(1, axes_became_input, axes_to_input)
        .lower(axes_became_input, 11, axes_to_attribute)
        .lower(11, 1, axes_from_front);
  };
  add("ReduceSum", {1, 11, 13}, summable, [](const Dim& a, const Dim& b) { return a + b; });
  add("ReduceProd", {1, 11, 13, 18}, summable, [](const Dim& a, const Dim& b) { return a * b; });
  add("ReduceMax", {1, 11, 12, 13, 18, 20}, comparable, [](const Dim& a, const Dim& b) { return max(a, b); });
  add("ReduceMin", {1, 11, 12, 13, 18, 20}, comparable, [](const Dim& a, const Dim& b) { return min(a, b); });
  add("ReduceMean", {1, 11, 13, 18}, summable);
  add("ReduceL1", {1, 11, 13, 18}, summable).decompose(decompose_l1);
  add("ReduceL2", {1, 11, 13, 18}, summable).decompose(decompose_l2);
  add("ReduceSumSquare", {1, 11, 13, 18}, summable).decompose(decompose_sum_square);
  // Integers are allowed up to version 18.
  add("ReduceLogSum", {1, 11, 13, 18, 28}, summable).decompose(decompose_log_sum);
  add("ReduceLogSumExp", {1, 11, 13, 18, 28}, summable).decompose(decompose_log_sum_exp);
}

}  // namespace tenon::ops

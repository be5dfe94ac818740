#include "ops/adapters.h"
#include "ops/inference.h"
#include "ops/operator.h"

namespace tenon::ops {
namespace {

using ir::AttributeKind;

void infer_top_k(Inference& i) {
  if (!i.has_shape(0)) {
    i.output(0, i.element(0), std::nullopt);
    return i.output(1, ElementType::int64, std::nullopt);
  }
  i.require_rank_at_least(0, 1);
  auto axis = static_cast<size_t>(i.axis(i.node().int_attribute("axis", -1), i.rank(0)));
  SymbolicShape result = i.shape(0);
  auto count = i.values(1);
  if (count && count->size() != 1) i.fail("K must be one number, it has {}", count->size());
  Dim k = count ? (*count)[0] : Dim::unknown();
  if (k.is_known() && (k.value() < 0 || (result[axis].is_known() && k.value() > result[axis].value()))) {
    i.fail_with(ErrorCode::invalid_value,
                fmt::format("K is {}, axis {} has size {}", k.value(), axis, result[axis].to_string()));
  }
  result[axis] = std::move(k);
  i.output(0, i.element(0), result);
  i.output(1, ElementType::int64, std::move(result));
}

void k_to_input(ir::Node& node) {
  node.set_input(1, &node.graph().add_constant(int64_vector({node.int_attribute("k", 0)}), "k"));
  node.remove_attribute("k");
}

std::string k_to_attribute(ir::Node& node) {
  const ir::Value* k = node.input(1);
  if (!k || !k->is_fixed() || k->constant()->tensor.elements() != 1) return "its K is computed";
  node.set_attribute({"k", k->constant()->tensor.data<int64_t>()[0]});
  node.remove_trailing_inputs(1);
  return {};
}

}  // namespace

void define_top_k(OperatorList& list) {
  list.add("TopK", {1, 10, 11, 24})
      .input("X", "T")
      .input("K", TypeSet{ElementType::int64})
      .output("Values", "T")
      .output("Indices", TypeSet{ElementType::int64})
      .types("T", types::numbers)
      .attribute("axis", AttributeKind::int_)
      .attribute("largest", AttributeKind::int_)
      .attribute("sorted", AttributeKind::int_)
      .infer(infer_top_k)
      .lift(1, 10, k_to_input)
      .lower(11, 10, axes_from_front)
      .lower(10, 1, k_to_attribute)
      .attribute_since(11, "largest", 1)
      .attribute_since(11, "sorted", 1);
}

}  // namespace tenon::ops

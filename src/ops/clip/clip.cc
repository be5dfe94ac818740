#include <limits>

#include "ops/adapters.h"
#include "ops/decomposition.h"
#include "ops/inference.h"
#include "ops/operator.h"

namespace tenon::ops {
namespace {

void infer_clip(Inference& i) {
  for (size_t k : {1, 2}) {
    if (i.has_shape(k) && element_count(i.shape(k)).is_known() && !element_count(i.shape(k)).is(1)) {
      i.fail("input {} must be one number", k);
    }
  }
  i.same_as_input(0);
}

// Bounds were attributes. They get the type of the first input.
void bounds_to_inputs(ir::Node& node) {
  drop_consumed_inputs(node);
  ir::Graph& graph = node.graph();
  const std::pair<const char*, size_t> bounds[] = {{"min", 1}, {"max", 2}};
  for (auto [name, at] : bounds) {
    if (!node.attribute(name)) continue;
    ir::Value& number = graph.add_constant(Tensor::scalar(node.float_attribute(name, 0)), name);
    node.remove_attribute(name);
    if (node.input(0) && node.input(0)->type.element == ElementType::float32) {
      node.set_input(at, &number);
      continue;
    }
    ir::Node& cast = graph.add_node("CastLike", "", &node);
    cast.origin = node.origin;
    cast.add_input(&number);
    cast.add_input(node.input(0));
    ir::Value& bound = graph.add_value(name, /*fresh=*/true);
    cast.add_output(&bound);
    node.set_input(at, &bound);
  }
}

std::string bounds_to_attributes(ir::Node& node) {
  const std::pair<const char*, size_t> bounds[] = {{"min", 1}, {"max", 2}};
  for (auto [name, at] : bounds) {
    const ir::Value* bound = node.input(at);
    if (!bound) continue;
    if (!bound->is_fixed()) return "its bounds are computed, older versions take constants only";
    const Tensor& tensor = bound->constant()->tensor;
    if (tensor.type() != ElementType::float32 || tensor.elements() != 1) return "its bounds are no float32 numbers";
  }
  for (auto [name, at] : bounds) {
    if (const ir::Value* bound = node.input(at)) node.set_attribute({name, bound->constant()->tensor.data<float>()[0]});
  }
  node.remove_trailing_inputs(1);
  return {};
}

// A bound may be a list of one number, which must not give a scalar an axis.
Term bound(Decomposition& d, size_t i) { return reshape(d.input(i), d.ints({})); }

void decompose_clip(Decomposition& d) {
  Term y = d.input(0);
  if (d.has_input(1)) y = max(y, bound(d, 1));
  if (d.has_input(2)) y = min(y, bound(d, 2));
  d.output(0, y);
}

}  // namespace

void define_clip(OperatorList& list) {
  list.add("Clip", {1, 6, 11, 12, 13})
      .input("input", "T")
      .optional_input("min", "T")
      .optional_input("max", "T")
      .output("output", "T")
      .types("T", types::numbers)
      .infer(infer_clip)
      .decompose(decompose_clip)
      .lift(1, 11, bounds_to_inputs)
      .lower(11, 6, bounds_to_attributes);
}

}  // namespace tenon::ops

#include "ops/decomposition.h"
#include "ops/inference.h"
#include "ops/operator.h"

namespace tenon::ops {
namespace {

void infer_softmax(Inference& i) {
  i.same_as_input(0);
  if (i.has_shape(0) && i.rank(0) > 0) i.axis(i.node().int_attribute("axis", -1), i.rank(0));
}

ir::Value* add_before(ir::Node& node, std::string op, std::initializer_list<ir::Value*> inputs, ir::Node* before,
                      std::vector<ir::Attribute> attributes = {}) {
  ir::Graph& graph = node.graph();
  ir::Node& added = graph.add_node(std::move(op), "", before);
  added.origin = node.origin;
  for (ir::Value* input : inputs) added.add_input(input);
  added.attributes = std::move(attributes);
  ir::Value& output = graph.add_value("lifted", /*fresh=*/true);
  added.add_output(&output);
  return &output;
}

// Until version 13 the axes from `axis` on counted as one. Where that is more than the last axis, the input is
// flattened to two axes and its shape given back after.
void flatten_first(ir::Node& node) {
  int64_t axis = node.int_attribute("axis", 1);
  ir::Value* input = node.input(0);
  ir::Value* output = node.output(0);
  node.set_attribute({"axis", int64_t{-1}});
  if (!input || !output || axis == -1) return;
  if (input->type.shape && axis == static_cast<int64_t>(input->type.shape->size()) - 1) return;
  std::vector<ir::Attribute> at;
  at.emplace_back("axis", axis);
  ir::Value* shape = add_before(node, "Shape", {input}, &node);
  node.set_input(0, add_before(node, "Flatten", {input}, &node, std::move(at)));
  // The node's own output becomes the flat one; its users read the reshaped one under the old name.
  ir::Graph& graph = node.graph();
  ir::Node& flat = graph.add_node(node.op_type, "", &node);
  flat.name = node.name;
  flat.origin = node.origin;
  flat.add_input(node.input(0));
  flat.set_attribute({"axis", int64_t{-1}});
  ir::Value& flat_output = graph.add_value("lifted", /*fresh=*/true);
  flat.add_output(&flat_output);
  node.op_type = "Reshape";
  node.attributes.clear();
  node.set_input(0, &flat_output);
  node.set_input(1, shape);
}

// Over the last axis both meanings are one.
std::string last_axis_only(ir::Node& node) {
  const ir::Value* input = node.input(0);
  if (!input || !input->type.shape) return "the rank of its input is not known";
  auto last = static_cast<int64_t>(input->type.shape->size()) - 1;
  int64_t axis = node.int_attribute("axis", -1);
  if (axis != -1 && axis != last) return "before version 13 it took all axes from the given one on";
  node.set_attribute({"axis", last});
  return {};
}

// The input as float32 or float64, less its largest element along the axis, and the sum of exponentials of that.
struct Shifted {
  Term x, sum;
};

Shifted shifted(Decomposition& d) {
  Term x = d.wide_input(0), axes = d.ints({d.node().int_attribute("axis", -1)});
  // A scalar has no axis.
  if (d.known_rank(0) == 0) axes = {};
  if (d.known_rank(0) < 0) axes = slice(axes, d.ints({0}), shape_of(shape_of(x)), 0);
  x = x - reduce("ReduceMax", x, axes);
  return {x, reduce("ReduceSum", exp(x), axes)};
}

void decompose_softmax(Decomposition& d) {
  auto [x, sum] = shifted(d);
  d.output(0, exp(x) / sum);
}

void decompose_log_softmax(Decomposition& d) {
  auto [x, sum] = shifted(d);
  d.output(0, x - log(sum));
}

}  // namespace

void define_softmax(OperatorList& list) {
  auto add = [&](const char* name) -> Operator& {
    return list.add(name, {1, 11, 13})
        .input("input", "T")
        .output("output", "T")
        .types("T", types::floats)
        .attribute("axis", ir::AttributeKind::int_)
        .infer(infer_softmax)
        .lift(1, 13, flatten_first)
        .lower(13, 1, last_axis_only);
  };
  add("Softmax").decompose(decompose_softmax);
  add("LogSoftmax").decompose(decompose_log_softmax);
  add("Hardmax");
}

}  // namespace tenon::ops

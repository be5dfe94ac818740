#include "ops/adapters.h"
#include "ops/decomposition.h"
#include "ops/inference.h"
#include "ops/operator.h"

namespace tenon::ops {
namespace {

using ir::AttributeKind;

void infer_per_channel(Inference& i) {
  i.require_rank_at_least(0, 2);
  i.require_rank(1, 1);
  i.require_rank(2, 1);
  i.same_as_input(0);
  if (i.has_shape(0) && i.has_shape(1))
    i.equal(i.shape(0)[1], i.shape(1)[0], "the channels of the input and the size of scale");
  if (i.has_shape(0) && i.has_shape(2))
    i.equal(i.shape(0)[1], i.shape(2)[0], "the channels of the input and the size of the bias");
}

void infer_group_norm(Inference& i) {
  infer_per_channel(i);
  int64_t groups = i.node().int_attribute("num_groups", 0);
  if (groups < 1)
    i.fail_with(ErrorCode::invalid_attribute, fmt::format("num_groups is {}; it must be at least 1", groups));
  if (i.has_shape(0) && i.shape(0)[1].is_known() && i.shape(0)[1].value() % groups != 0) {
    i.fail("{} channels cannot be divided into {} groups", i.shape(0)[1].value(), groups);
  }
}

ir::Value* added(ir::Node& before, const char* op, const std::vector<ir::Value*>& inputs) {
  ir::Graph& graph = before.graph();
  ir::Node& node = graph.add_node(op, "", &before);
  node.origin = before.origin;
  for (ir::Value* input : inputs) node.add_input(input);
  ir::Value& output = graph.add_value(std::string("group_norm_") + op, true);
  node.add_output(&output);
  return &output;
}

// Scale and bias had one element per group until version 21; now they have one per channel.
void repeat_scale_per_channel(ir::Node& node) {
  ir::Graph& graph = node.graph();
  int64_t groups = node.int_attribute("num_groups", 0);
  if (groups < 1)
    throw Error(ErrorCode::invalid_attribute, fmt::format("num_groups is {}; it must be at least 1", groups));
  auto vector = [&](std::initializer_list<int64_t> values) {
    return &graph.add_constant(Tensor(Shape{static_cast<int64_t>(values.size())}, values), "sizes");
  };
  ir::Value* channels = added(node, "Shape", {node.input(0)});
  channels->producer()->set_attribute({"start", int64_t{1}});
  channels->producer()->set_attribute({"end", int64_t{2}});
  ir::Value* count = vector({groups});
  ir::Value* sizes = added(node, "Concat", {count, added(node, "Div", {channels, count})});
  sizes->producer()->set_attribute({"axis", int64_t{0}});
  for (size_t i : {1, 2}) {
    ir::Value* column = added(node, "Reshape", {node.input(i), vector({groups, 1})});
    node.set_input(i, added(node, "Reshape", {added(node, "Expand", {column, sizes}), vector({-1})}));
  }
}

// As [batch, group, channel of the group, position].
void decompose_group_norm(Decomposition& d) {
  Term x = d.wide_input(0), groups = d.ints({d.node().int_attribute("num_groups", 1)});
  Term per_group = size_of(x, 1) / groups, positions = reduce("ReduceProd", shape_of(x, 2));
  Term grouped = reshape(x, concat({size_of(x, 0), groups, per_group, positions})), axes = d.ints({2, 3});
  Term centered = grouped - reduce("ReduceMean", grouped, axes);
  Term variance = reduce("ReduceMean", centered * centered, axes);
  Term normalized = centered / sqrt(variance + d.node().float_attribute("epsilon", 1e-5f));
  auto per_channel = [&](size_t i) { return reshape(d.wide_input(i), concat({groups, per_group, d.ints({1})})); };
  d.output(0, reshape(normalized * per_channel(1) + per_channel(2), shape_of(x)));
}

}  // namespace

void define_instance_norm(OperatorList& list) {
  list.add("InstanceNormalization", {1, 6, 22})
      .input("input", "T")
      .input("scale", "T")
      .input("B", "T")
      .output("output", "T")
      .types("T", types::floats)
      .attribute("epsilon", AttributeKind::float_)
      .infer(infer_per_channel)
      .lift(1, 6, drop_consumed_inputs);
  list.add("GroupNormalization", {18, 21})
      .input("X", "T")
      .input("scale", "T")
      .input("bias", "T")
      .output("Y", "T")
      .types("T", types::floats)
      .attribute("epsilon", AttributeKind::float_)
      .required_attribute("num_groups", AttributeKind::int_)
      .attribute("stash_type", AttributeKind::int_)
      .infer(infer_group_norm)
      .decompose(decompose_group_norm)
      .lift(18, 21, repeat_scale_per_channel);
}

}  // namespace tenon::ops

#include <algorithm>

#include "ops/adapters.h"
#include "ops/inference.h"
#include "ops/operator.h"

namespace tenon::ops {
namespace {

using ir::AttributeKind;

void infer_batch_norm(Inference& i) {
  i.same_as_input(0);
  Dim channels = Dim::unknown();
  if (i.has_shape(0)) {
    i.require_rank_at_least(0, 1);
    channels = i.rank(0) == 1 ? Dim(1) : i.shape(0)[1];
  }
  constexpr const char* names[] = {"X", "scale", "B", "input_mean", "input_var"};
  for (size_t k = 1; k <= 4; ++k) {
    i.require_rank(k, 1);
    if (i.has_shape(k))
      channels = i.equal(channels, i.shape(k)[0], fmt::format("the channels of X and the size of {}", names[k]));
  }
  i.output(1, i.element(3), SymbolicShape{channels});
  i.output(2, i.element(3), SymbolicShape{channels});
}

// is_test told training apart until version 6; since 7 the outputs that are used do.
void drop_is_test(ir::Node& node) { node.remove_attribute("is_test"); }

ir::Value& added(ir::Node& before, const char* op, const std::vector<ir::Value*>& inputs,
                 std::vector<ir::Attribute> attributes = {}) {
  ir::Graph& graph = before.graph();
  ir::Node& node = graph.add_node(op, "", &before);
  node.origin = before.origin;
  for (ir::Value* input : inputs) node.add_input(input);
  for (ir::Attribute& attribute : attributes) node.set_attribute(std::move(attribute));
  ir::Value& output = graph.add_value(std::string("batch_norm_") + op, true);
  node.add_output(&output);
  return output;
}

bool is_used(const ir::Value* value) {
  return value && (!value->users().empty() ||
                   std::ranges::find(value->graph().outputs(), value) != value->graph().outputs().end());
}

// Without `spatial`, every element of an image had its own statistics: those of the flattened image's channels.
void drop_spatial(ir::Node& node) {
  bool spatial = node.int_attribute("spatial", 1) != 0;
  node.remove_attribute("spatial");
  if (spatial) return;
  for (size_t i = 1; i < node.output_count(); ++i) {
    if (is_used(node.output(i)))
      throw Error(ErrorCode::unsupported, "training with spatial = 0 has no newer equivalent");
  }
  ir::Graph& graph = node.graph();
  ir::Value* x = node.input(0);
  ir::Value& flat_shape = graph.add_constant(Tensor(Shape{1}, {int64_t{-1}}), "flat");
  std::vector<ir::Value*> inputs{&added(node, "Flatten", {x}, [] {
    std::vector<ir::Attribute> axis;
    axis.emplace_back("axis", int64_t{1});
    return axis;
  }())};
  for (size_t i = 1; i <= 4; ++i) inputs.push_back(&added(node, "Reshape", {node.input(i), &flat_shape}));
  std::vector<ir::Attribute> attributes;
  attributes.emplace_back("epsilon", node.float_attribute("epsilon", 1e-5f));
  ir::Value& normalized = added(node, "BatchNormalization", inputs, std::move(attributes));
  ir::Value& shape = added(node, "Shape", {x});
  node.attributes.clear();
  node.op_type = "Reshape";
  node.remove_trailing_inputs(0);
  node.add_input(&normalized);
  node.add_input(&shape);
  node.remove_trailing_outputs(1);
}

// Training was asked for by the outputs that are used; outputs that nobody reads are names that exporters left.
void say_training_mode(ir::Node& node) {
  for (size_t i = 3; i < node.output_count(); ++i) {
    if (is_used(node.output(i))) {
      throw Error(ErrorCode::unsupported,
                  "the outputs saved_mean and saved_var were dropped in version 14 and have no newer equivalent");
    }
  }
  bool training = is_used(node.output(1)) || is_used(node.output(2));
  node.remove_trailing_outputs(training ? 3 : 1);
  if (training) node.set_attribute({"training_mode", int64_t{1}});
}

std::string drop_training_mode(ir::Node& node) {
  if (node.int_attribute("training_mode", 0) != 0) return "it is training";
  node.remove_attribute("training_mode");
  return {};
}

}  // namespace

void define_batch_norm(OperatorList& list) {
  list.add("BatchNormalization", {1, 6, 7, 9, 14, 15})
      .input("X", "T")
      .input("scale", "T1")
      .input("B", "T1")
      .input("input_mean", "T2")
      .input("input_var", "T2")
      .output("Y", "T")
      .optional_output("running_mean", "T2")
      .optional_output("running_var", "T2")
      .types("T", types::floats)
      .types("T1", types::floats)
      .types("T2", types::floats)
      .attribute("epsilon", AttributeKind::float_)
      .attribute("momentum", AttributeKind::float_)
      .attribute("training_mode", AttributeKind::int_)
      .infer(infer_batch_norm)
      .lift(1, 6, drop_consumed_inputs)
      .lift(6, 7, drop_is_test)
      .lift(7, 9, drop_spatial)
      .lift(9, 14, say_training_mode)
      .lower(14, 9, drop_training_mode)
      .lower(9, 7, same_meaning);
}

}  // namespace tenon::ops

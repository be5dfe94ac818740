#include "ops/adapters.h"
#include "ops/inference.h"
#include "ops/layout.h"
#include "ops/operator.h"

namespace tenon::ops {
namespace {

void infer_dropout(Inference& i) {
  i.output(0, i.type(0));
  i.output(1, ElementType::boolean, i.type(0).shape);
}

// Outside of training the data passes as it is.
std::optional<int64_t> pass_data(const Layout& layout, size_t output) {
  const bool trains =
      layout.inputs.size() > 2 && layout.inputs[2] &&
      (!layout.contents[2] || layout.contents[2]->elements() != 1 || layout.contents[2]->data<bool>()[0]);
  return output == 0 && !trains ? std::optional<int64_t>(0) : std::nullopt;
}

// Until version 10 the mask had the type of the data.
void mask_to_bool(ir::Node& node) {
  node.remove_attribute("consumed_inputs");
  node.remove_attribute("is_test");
  ir::Value* mask = node.output(1);
  if (!mask) return;
  node.remove_trailing_outputs(1);
  ir::Value& flags = node.graph().add_value("mask", /*fresh=*/true);
  node.add_output(&flags);
  ir::Node& cast = node.graph().add_node("CastLike");
  cast.origin = node.origin;
  cast.add_input(&flags);
  cast.add_input(node.input(0));
  cast.add_output(mask);
}

void ratio_to_input(ir::Node& node) {
  Tensor ratio = Tensor::scalar(node.float_attribute("ratio", 0.5f));
  node.remove_attribute("ratio");
  node.set_input(1, &node.graph().add_constant(std::move(ratio), "ratio"));
}

std::string ratio_to_attribute(ir::Node& node) {
  const ir::Value *ratio = node.input(1), *training = node.input(2);
  if (training && !(training->is_fixed() && !training->constant()->tensor.data<bool>()[0])) return "it may be training";
  if (ratio && (!ratio->is_fixed() || ratio->constant()->tensor.type() != ElementType::float32))
    return "its ratio is no constant float32";
  if (ratio) node.set_attribute({"ratio", ratio->constant()->tensor.data<float>()[0]});
  node.remove_trailing_inputs(1);
  node.remove_attribute("seed");
  return {};
}

std::string without_mask(ir::Node& node) { return node.output(1) ? "its mask was no bool before version 10" : ""; }

}  // namespace

void define_dropout(OperatorList& list) {
  constexpr TypeSet droppable = types::floats | (types::float8s - TypeSet{ElementType::float8e8m0});
  list.add("Dropout", {1, 6, 7, 10, 12, 13, 22})
      .input("data", "T")
      .optional_input("ratio", droppable)
      .optional_input("training_mode", types::bools)
      .output("output", "T")
      .optional_output("mask", types::bools)
      .types("T", droppable)
      .attribute("seed", ir::AttributeKind::int_)
      .infer(infer_dropout)
      .random()
      .views(pass_data)
      .lift(1, 10, mask_to_bool)
      .lift(10, 12, ratio_to_input)
      .lower(12, 10, ratio_to_attribute)
      .lower(10, 7, without_mask);
}

}  // namespace tenon::ops

#include "ops/adapters.h"
#include "ops/decomposition.h"
#include "ops/inference.h"
#include "ops/operator.h"

namespace tenon::ops {
namespace {

using ir::AttributeKind;

SymbolicShape unknown_like(const SymbolicShape& shape) {
  SymbolicShape result;
  for (size_t axis = 0; axis < shape.size(); ++axis) result.push_back(Dim::unknown());
  return result;
}

void infer_pad(Inference& i) {
  std::string mode = i.node().string_attribute("mode", "constant");
  if (mode != "constant" && mode != "reflect" && mode != "edge" && mode != "wrap") {
    i.fail_with(ErrorCode::invalid_attribute,
                fmt::format("mode '{}' is not one of constant, reflect, edge, wrap", mode));
  }
  if (!i.has_shape(0)) return i.output(0, i.element(0), std::nullopt);
  auto pads = i.values(1);
  auto axis_list = i.ints(3);
  if (!pads || (i.has_input(3) && !axis_list)) return i.output(0, i.element(0), unknown_like(i.shape(0)));
  if (!axis_list) {
    axis_list.emplace();
    for (int axis = 0; axis < i.rank(0); ++axis) axis_list->push_back(axis);
  }
  std::vector<int> axes = i.axes(*axis_list, i.rank(0));
  if (pads->size() != 2 * axes.size())
    i.fail("there are {} pads for {} axes; each takes two", pads->size(), axes.size());
  SymbolicShape result = i.shape(0);
  for (size_t k = 0; k < axes.size(); ++k) {
    Dim& dim = result[static_cast<size_t>(axes[k])];
    dim = dim + (*pads)[k] + (*pads)[k + axes.size()];
    if (dim.is_known() && dim.value() < 0) i.fail("the pads leave size {} on axis {}", dim.value(), axes[k]);
  }
  i.output(0, i.element(0), std::move(result));
}

void infer_center_crop_pad(Inference& i) {
  if (!i.has_shape(0)) return i.output(0, i.element(0), std::nullopt);
  auto sizes = i.values(1);
  std::vector<int64_t> axis_list = i.node().ints_attribute("axes");
  if (!i.node().attribute("axes")) {
    for (int axis = 0; axis < i.rank(0); ++axis) axis_list.push_back(axis);
  }
  std::vector<int> axes = i.axes(axis_list, i.rank(0));
  SymbolicShape result = i.shape(0);
  if (sizes && sizes->size() != axes.size()) i.fail("there are {} sizes for {} axes", sizes->size(), axes.size());
  for (size_t k = 0; k < axes.size(); ++k) {
    Dim size = sizes ? (*sizes)[k] : Dim::unknown();
    if (size.is_known() && size.value() < 0) i.fail("the new size of axis {} is {}", axes[k], size.value());
    result[static_cast<size_t>(axes[k])] = std::move(size);
  }
  i.output(0, i.element(0), std::move(result));
}

void rename_paddings(ir::Node& node) {
  node.set_attribute(ir::Attribute("pads", node.ints_attribute("paddings")));
  node.remove_attribute("paddings");
}

void pads_to_inputs(ir::Node& node) {
  ints_attribute_to_input(node, "pads", 1);
  float value = node.float_attribute("value", 0);
  node.remove_attribute("value");
  if (value == 0) return;
  ir::Value& number = node.graph().add_constant(Tensor::scalar(value), "value");
  node.set_input(2, &add_node_before(node, "CastLike", {&number, node.input(0)}, "constant_value"));
}

// Negative pads crop.
void decompose_center_crop_pad(Decomposition& d) {
  Term x = d.input(0), sizes = shape_of(x), axes;
  if (d.node().attribute("axes")) {
    axes = d.ints(d.node().ints_attribute("axes"));
    sizes = gather(sizes, axes, 0);
  }
  Term difference = cast(d.input(1), ElementType::int64) - sizes, before = difference / 2;
  d.output(0, d.add("Pad", {x, concat({before, difference - before}), {}, axes}));
}

}  // namespace

void define_pad(OperatorList& list) {
  list.add("Pad", {1, 2, 11, 13, 18, 19, 21, 23, 24, 25})
      .input("data", "T")
      .input("pads", TypeSet{ElementType::int64})
      .optional_input("constant_value", "T")
      .optional_input("axes", "Tind")
      .output("output", "T")
      .types("T", types::all)
      .types("Tind", types::index)
      .attribute("mode", AttributeKind::string)
      .infer(infer_pad)
      .lift(1, 2, rename_paddings)
      .lift(2, 11, pads_to_inputs);
  list.add("CenterCropPad", {18})
      .input("input_data", "T")
      .input("shape", "Tind")
      .output("output_data", "T")
      .types("T", types::movable)
      .types("Tind", types::index)
      .attribute("axes", AttributeKind::ints)
      .infer(infer_center_crop_pad)
      .decompose(decompose_center_crop_pad);
}

}  // namespace tenon::ops

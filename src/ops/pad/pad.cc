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

std::string pads_to_attributes(ir::Node& node) {
  float value = 0;
  if (const ir::Value* number = node.input(2)) {
    if (!number->is_fixed() || number->constant()->tensor.type() != ElementType::float32 ||
        number->constant()->tensor.elements() != 1)
      return "the value it pads with is no constant float32";
    value = number->constant()->tensor.data<float>()[0];
  }
  if (!node.input(1) || !node.input(1)->is_fixed()) return "its pads are computed, older versions take constants only";
  node.remove_trailing_inputs(2);
  if (value != 0) node.set_attribute({"value", value});
  return ints_input_to_attribute(node, 1, "pads");
}

// Pads of some axes become pads of all.
std::string axes_to_all(ir::Node& node) {
  if (node.string_attribute("mode", "constant") == "wrap") return "mode wrap came with version 19";
  const ir::Value *pads = node.input(1), *axes = node.input(3);
  if (!axes) return {};
  if (!pads || !pads->is_fixed() || !axes->is_fixed() || !node.input(0)->type.shape)
    return "its pads, axes or rank are not known";
  Fact pads_fact = Fact::of(pads->constant()->tensor), axes_fact = Fact::of(axes->constant()->tensor);
  auto given = ints_of(pads_fact), list = ints_of(axes_fact);
  const size_t rank = node.input(0)->type.shape->size();
  if (!given || !list || given->size() != 2 * list->size()) return "its pads do not fit its axes";
  std::vector<int64_t> all(2 * rank, 0);
  for (size_t i = 0; i < list->size(); ++i) {
    auto axis = static_cast<size_t>((*list)[i] < 0 ? (*list)[i] + static_cast<int64_t>(rank) : (*list)[i]);
    if (axis >= rank) return "its axes are not valid";
    all[axis] = (*given)[i];
    all[axis + rank] = (*given)[i + list->size()];
  }
  node.set_input(1, &node.graph().add_constant(int64_vector(all), "pads"));
  node.remove_trailing_inputs(node.input(2) ? 3 : 2);
  return {};
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
      .lift(2, 11, pads_to_inputs)
      .lower(18, 11, axes_to_all)
      .lower(11, 2, pads_to_attributes);
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

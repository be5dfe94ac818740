#include "ops/resize/resize.h"

#include <algorithm>
#include <cmath>

#include "ops/operator.h"

namespace tenon::ops {
namespace {

using ir::AttributeKind;

// The size that `scale` gives a dim, as far as it can be written as an expression.
Dim scaled(const Inference& i, const Dim& dim, float scale) {
  if (dim.is_known()) {
    double size = std::floor(static_cast<float>(dim.value()) * scale);
    if (size > 1e15)
      i.fail_with(ErrorCode::overflow, fmt::format("scale {} makes the size {} too large", scale, dim.value()));
    return Dim(static_cast<int64_t>(size));
  }
  if (scale == std::floor(scale) && scale < 1e6f) return dim * static_cast<int64_t>(scale);
  float inverse = 1 / scale;
  if (inverse == std::floor(inverse) && inverse < 1e6f && 1 / inverse == scale)
    return floor_div(dim, static_cast<int64_t>(inverse));
  return Dim::unknown();
}

bool is_given(const Inference& i, size_t input) {
  return i.has_input(input) && !(i.has_shape(input) && i.rank(input) == 1 && i.shape(input)[0].is(0));
}

void check_count(const Inference& i, size_t input, size_t axes, const char* name) {
  i.require_rank(input, 1);
  if (i.has_shape(input))
    i.equal(i.shape(input)[0], static_cast<int64_t>(axes),
            fmt::format("the elements of {} and the axes to resize", name));
}

void infer_resize(Inference& i) {
  bool scales_given = is_given(i, 2), sizes_given = is_given(i, 3);
  auto may_be_empty_list = [&](size_t input) {
    return !i.has_shape(input) || (i.rank(input) == 1 && !i.shape(input)[0].is_known());
  };
  bool may_be_empty = scales_given && sizes_given && (may_be_empty_list(2) || may_be_empty_list(3));
  if (may_be_empty) {
    if (!i.has_shape(0)) return i.output(0, i.element(0), std::nullopt);
    return i.output(0, i.element(0), SymbolicShape(i.shape(0).size(), Dim::unknown()));
  }
  if (scales_given == sizes_given) {
    i.fail_with(ErrorCode::missing_input, scales_given ? "scales and sizes are both given; one of them must be left out"
                                                       : "neither scales nor sizes are given");
  }
  if (!i.has_shape(0)) return i.output(0, i.element(0), std::nullopt);
  SymbolicShape result = i.shape(0);
  std::vector<int> axes = resized_axes(i.node(), i.rank(0));
  std::string policy = i.node().string_attribute("keep_aspect_ratio_policy", "stretch");
  if (policy != "stretch" && policy != "not_larger" && policy != "not_smaller") {
    i.fail_with(ErrorCode::invalid_attribute,
                fmt::format("keep_aspect_ratio_policy is '{}'; it may be stretch, not_larger or not_smaller", policy));
  }
  check_count(i, scales_given ? 2 : 3, axes.size(), scales_given ? "scales" : "sizes");
  auto values = sizes_given ? i.values(3) : std::nullopt;
  const Tensor* scales = scales_given ? i.constant(2) : nullptr;
  bool all_known = i.ints(3).has_value() &&
                   std::ranges::all_of(axes, [&](int a) { return result[static_cast<size_t>(a)].is_known(); });
  if (values && policy != "stretch" && all_known) {
    double best = policy == "not_larger" ? INFINITY : 0;
    for (size_t k = 0; k < axes.size(); ++k) {
      double ratio =
          static_cast<double>((*values)[k].value()) / static_cast<double>(result[static_cast<size_t>(axes[k])].value());
      best = policy == "not_larger" ? std::min(best, ratio) : std::max(best, ratio);
    }
    for (int axis : axes) {
      Dim& dim = result[static_cast<size_t>(axis)];
      double size = best * static_cast<double>(dim.value()) + 0.5;
      if (!(size < 1e15)) i.fail("sizes cannot keep the aspect ratio of {}", to_string(i.shape(0)));
      dim = static_cast<int64_t>(size);
    }
  } else {
    for (size_t k = 0; k < axes.size(); ++k) {
      Dim& dim = result[static_cast<size_t>(axes[k])];
      if (values && policy == "stretch")
        dim = (*values)[k];
      else if (scales)
        dim = scaled(i, dim, checked_scale(scales->data<float>()[k]));
      else
        dim = Dim::unknown();
      if (dim.is_known() && dim.value() < 0) i.fail("sizes has {} for axis {}", dim.value(), axes[k]);
    }
  }
  i.output(0, i.element(0), std::move(result));
}

// The content of an initializer or of a Constant's output, if it is floats; else null.
const Tensor* constant_floats(const ir::Value* value) {
  const Tensor* tensor = nullptr;
  if (value && value->is_fixed()) tensor = &value->constant()->tensor;
  if (value && value->producer() && value->producer()->op_type == "Constant") {
    tensor = value->producer()->tensor_attribute("value");
  }
  return tensor && tensor->type() == ElementType::float32 ? tensor : nullptr;
}

void set_nearest_mode(ir::Node& node, const char* nearest) {
  node.set_attribute({"coordinate_transformation_mode", std::string("asymmetric")});
  node.set_attribute({"nearest_mode", std::string(nearest)});
}

// Version 10 sampled at x / scale, rounded down where an axis grows and up where it shrinks, and had no roi.
void add_roi(ir::Node& node) {
  ir::Value* scales = node.input(1);
  node.set_input(1, &node.graph().add_constant(Tensor(ElementType::float32, Shape{0}), "roi"));
  node.set_input(2, scales);
  set_nearest_mode(node, "floor");
  const Tensor* factors = constant_floats(scales);
  if (!factors || node.string_attribute("mode", "nearest") != "nearest") return;
  auto values = factors->data<float>();
  if (std::ranges::none_of(values, [](float f) { return f < 1; })) return;
  if (std::ranges::none_of(values, [](float f) { return f > 1; })) return set_nearest_mode(node, "ceil");
  // Some axes shrink and others grow: first the ones, then the others.
  std::vector<float> shrink, grow;
  for (float f : values) {
    shrink.push_back(std::min(f, 1.0f));
    grow.push_back(std::max(f, 1.0f));
  }
  ir::Graph& graph = node.graph();
  auto constant = [&](const std::vector<float>& list) {
    return &graph.add_constant(Tensor(factors->shape(), std::span<const float>(list)), "scales");
  };
  ir::Node& first = graph.add_node("Resize", "", &node);
  first.origin = node.origin;
  first.add_input(node.input(0));
  first.add_input(node.input(1));
  first.add_input(constant(shrink));
  set_nearest_mode(first, "ceil");
  ir::Value& smaller = graph.add_value("smaller", true);
  first.add_output(&smaller);
  node.set_input(0, &smaller);
  node.set_input(2, constant(grow));
}

std::string not_symmetric(ir::Node& node) {
  const bool symmetric = node.string_attribute("coordinate_transformation_mode", "") == "half_pixel_symmetric";
  return symmetric ? "half_pixel_symmetric came with version 19" : "";
}

std::string roi_must_be_there(ir::Node& node) {
  // Version 11 took empty tensors for what is left out.
  ir::Graph& graph = node.graph();
  Tensor none(ElementType::float32, Shape{0});
  if (!node.input(1)) node.set_input(1, &graph.add_constant(none, "roi"));
  if (!node.input(2)) node.set_input(2, &graph.add_constant(none, "scales"));
  return {};
}

std::string asymmetric_only(ir::Node& node) {
  if (node.input(3)) return "it has sizes, version 10 takes scales only";
  const std::string mode = node.string_attribute("mode", "nearest");
  if (node.string_attribute("coordinate_transformation_mode", "half_pixel") != "asymmetric" ||
      (mode != "linear" && (mode != "nearest" || node.string_attribute("nearest_mode", "") != "floor")))
    return "version 10 samples only asymmetrically, rounding down";
  for (const char* name :
       {"coordinate_transformation_mode", "nearest_mode", "cubic_coeff_a", "exclude_outside", "extrapolation_value"})
    node.remove_attribute(name);
  ir::Value* scales = node.input(2);
  node.remove_trailing_inputs(1);
  node.set_input(1, scales);
  return {};
}

std::string become_upsample(ir::Node& node) {
  const Tensor* factors = constant_floats(node.input(1));
  if (!factors || std::ranges::any_of(factors->data<float>(), [](float factor) { return factor < 1; }))
    return "before version 10 sizes could only grow, by constant factors";
  node.op_type = "Upsample";
  return {};
}

std::string scales_to_attribute(ir::Node& node) {
  const auto factors = constant_floats(node.input(1))->data<float>();
  node.set_attribute({"scales", std::vector<float>(factors.begin(), factors.end())});
  node.remove_trailing_inputs(1);
  return {};
}

void set_scales(ir::Node& node, const std::vector<float>& scales) {
  Tensor tensor(Shape{static_cast<int64_t>(scales.size())}, std::span<const float>(scales));
  node.set_input(1, &node.graph().add_constant(std::move(tensor), "scales"));
}

void scales_of_image(ir::Node& node) {
  std::vector<float> scales{1, 1, node.float_attribute("height_scale", 1), node.float_attribute("width_scale", 1)};
  node.remove_attribute("height_scale");
  node.remove_attribute("width_scale");
  node.set_attribute({"scales", std::move(scales)});
}

void scales_to_input(ir::Node& node) {
  set_scales(node, node.floats_attribute("scales"));
  node.remove_attribute("scales");
}

void become_resize(ir::Node& node) {
  node.op_type = "Resize";
  if (node.string_attribute("mode", "nearest") == "bilinear") node.set_attribute({"mode", std::string("linear")});
}

void deprecated_to_resize(ir::Node& node) {
  become_resize(node);
  add_roi(node);
}

}  // namespace

std::vector<int> resized_axes(const ir::Node& node, int rank) {
  std::vector<int> axes;
  if (!node.attribute("axes")) {
    for (int axis = 0; axis < rank; ++axis) axes.push_back(axis);
    return axes;
  }
  for (int64_t axis : node.ints_attribute("axes")) {
    int64_t positive = axis < 0 ? axis + rank : axis;
    if (positive < 0 || positive >= rank)
      throw Error(ErrorCode::invalid_attribute, fmt::format("axis {} is out of range for rank {}", axis, rank));
    if (std::ranges::find(axes, positive) != axes.end())
      throw Error(ErrorCode::invalid_attribute, fmt::format("axis {} is given twice", axis));
    axes.push_back(static_cast<int>(positive));
  }
  return axes;
}

float checked_scale(float scale) {
  if (!(scale > 0) || !std::isfinite(scale))
    throw Error(ErrorCode::invalid_value, fmt::format("scales has {}; it must be positive", scale));
  return scale;
}

void define_resize(OperatorList& list) {
  list.add("Resize", {10, 11, 13, 18, 19})
      .input("X", "T1")
      .optional_input("roi", TypeSet{ElementType::float16, ElementType::float32, ElementType::float64})
      .optional_input("scales", TypeSet{ElementType::float32})
      .optional_input("sizes", TypeSet{ElementType::int64})
      .output("Y", "T1")
      .types("T1", types::movable)
      .attribute("antialias", AttributeKind::int_)
      .attribute("axes", AttributeKind::ints)
      .attribute("coordinate_transformation_mode", AttributeKind::string)
      .attribute("cubic_coeff_a", AttributeKind::float_)
      .attribute("exclude_outside", AttributeKind::int_)
      .attribute("extrapolation_value", AttributeKind::float_)
      .attribute("keep_aspect_ratio_policy", AttributeKind::string)
      .attribute("mode", AttributeKind::string)
      .attribute("nearest_mode", AttributeKind::string)
      .infer(infer_resize)
      .lift(10, 11, add_roi)
      .lower(19, 18, not_symmetric)
      .lower(13, 11, roi_must_be_there)
      .lower(11, 10, asymmetric_only)
      .lower(10, 9, become_upsample)
      .lower(9, 7, scales_to_attribute)
      .attribute_since(18, "antialias", 0)
      .attribute_since(18, "axes")
      .attribute_since(18, "keep_aspect_ratio_policy", "stretch");
  // Deprecated since version 10; every version becomes a Resize.
  list.add("Upsample", {1, 7, 9, 10})
      .input("X", "T")
      .input("scales", TypeSet{ElementType::float32})
      .output("Y", "T")
      .types("T", types::movable)
      .attribute("mode", AttributeKind::string)
      .lift(1, 7, scales_of_image)
      .lift(7, 9, scales_to_input)
      .lift(9, 10, become_resize)
      .lift(10, 11, deprecated_to_resize);
}

}  // namespace tenon::ops

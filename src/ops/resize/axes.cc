#include <algorithm>

#include "base/fail.h"
#include "ops/resize/resize.h"
#include "ops/resize/sampling.h"

namespace tenon::ops {
namespace {

template <typename Enum>
Enum choice(const ir::Node& node, const char* attribute, const char* otherwise,
            std::initializer_list<std::pair<const char*, Enum>> choices) {
  std::string text = node.string_attribute(attribute, otherwise), names;
  for (const auto& [name, value] : choices) {
    if (text == name) return value;
    names += names.empty() ? name : std::string(", ") + name;
  }
  fail(ErrorCode::invalid_attribute, "{} is '{}'; it may be one of {}", attribute, text, names);
}

double number_at(const Tensor& tensor, size_t i) {
  switch (tensor.type()) {
    case ElementType::float16:
      return static_cast<double>(static_cast<float>(tensor.data<float16>()[i]));
    case ElementType::float64:
      return tensor.data<double>()[i];
    default:
      return static_cast<double>(tensor.data<float>()[i]);
  }
}

void set_crop(const Tensor* roi, const std::vector<int>& axes, std::vector<ResizedAxis>& result) {
  if (!roi) fail(ErrorCode::missing_input, "tf_crop_and_resize needs the input roi");
  if (roi->elements() != static_cast<int64_t>(2 * axes.size())) {
    fail(ErrorCode::invalid_value, "roi has {} elements; {} axes need {}", roi->elements(), axes.size(),
         2 * axes.size());
  }
  for (size_t k = 0; k < axes.size(); ++k) {
    result[static_cast<size_t>(axes[k])].crop_begin = number_at(*roi, k);
    result[static_cast<size_t>(axes[k])].crop_end = number_at(*roi, axes.size() + k);
  }
}

}  // namespace

ResizeMode resize_mode(const ir::Node& node) {
  using Filter = ResizeMode::Filter;
  using Transform = ResizeMode::Transform;
  using Nearest = ResizeMode::Nearest;
  ResizeMode mode;
  mode.filter = choice<Filter>(node, "mode", "nearest",
                               {{"nearest", Filter::nearest}, {"linear", Filter::linear}, {"cubic", Filter::cubic}});
  mode.transform = choice<Transform>(node, "coordinate_transformation_mode", "half_pixel",
                                     {{"half_pixel", Transform::half_pixel},
                                      {"half_pixel_symmetric", Transform::half_pixel_symmetric},
                                      {"pytorch_half_pixel", Transform::pytorch_half_pixel},
                                      {"tf_half_pixel_for_nn", Transform::tf_half_pixel},
                                      {"align_corners", Transform::align_corners},
                                      {"asymmetric", Transform::asymmetric},
                                      {"tf_crop_and_resize", Transform::crop}});
  mode.nearest = choice<Nearest>(node, "nearest_mode", "round_prefer_floor",
                                 {{"round_prefer_floor", Nearest::round_prefer_floor},
                                  {"round_prefer_ceil", Nearest::round_prefer_ceil},
                                  {"floor", Nearest::floor},
                                  {"ceil", Nearest::ceil}});
  mode.cubic_coefficient = node.float_attribute("cubic_coeff_a", -0.75f);
  mode.antialias = node.int_attribute("antialias", 0) != 0;
  mode.exclude_outside = node.int_attribute("exclude_outside", 0) != 0;
  if (mode.antialias && mode.filter == Filter::nearest)
    fail(ErrorCode::invalid_attribute, "antialias works with the modes linear and cubic only");
  return mode;
}

std::vector<ResizedAxis> axes_to_resize(const ir::Node& node, const ResizeMode& mode, const Shape& in, const Shape& out,
                                        const Tensor* roi, const Tensor* scales, const Tensor* sizes) {
  std::vector<ResizedAxis> result;
  for (int axis = 0; axis < in.rank(); ++axis) result.push_back({in[axis], out[axis], 1});
  const std::vector<int> axes = resized_axes(node, in.rank());
  const bool by_scales = scales && scales->elements() > 0;
  const std::string policy = node.string_attribute("keep_aspect_ratio_policy", "stretch");
  const bool same_scale = !by_scales && policy != "stretch", smallest = policy == "not_larger";
  double common = 0;
  for (size_t k = 0; k < axes.size(); ++k) {
    ResizedAxis& axis = result[static_cast<size_t>(axes[k])];
    axis.scale = by_scales ? checked_scale(scales->data<float>()[k])
                           : static_cast<double>(sizes->data<int64_t>()[k]) / static_cast<double>(axis.input);
    common = k == 0 ? axis.scale : smallest ? std::min(common, axis.scale) : std::max(common, axis.scale);
  }
  if (same_scale) {
    for (int axis : axes) result[static_cast<size_t>(axis)].scale = common;
  }
  if (mode.transform == ResizeMode::Transform::crop) set_crop(roi, axes, result);
  return result;
}

}  // namespace tenon::ops

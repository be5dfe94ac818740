// Where the elements of a resized axis come from.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ir/graph.h"
#include "tenon/tensor.h"

namespace tenon::ops {

struct ResizeMode {
  enum class Filter : uint8_t { nearest, linear, cubic } filter = Filter::nearest;
  enum class Transform : uint8_t {
    half_pixel,
    half_pixel_symmetric,
    pytorch_half_pixel,
    tf_half_pixel,  // of version 11 only
    align_corners,
    asymmetric,
    crop
  } transform = Transform::half_pixel;
  enum class Nearest : uint8_t {
    round_prefer_floor,
    round_prefer_ceil,
    floor,
    ceil
  } nearest = Nearest::round_prefer_floor;
  double cubic_coefficient = -0.75;
  bool antialias = false;
  bool exclude_outside = false;
};

// One axis to resize.
struct ResizedAxis {
  int64_t input, output;
  double scale;
  double crop_begin = 0, crop_end = 1;

  bool is_identity(const ResizeMode& mode) const {
    return input == output && scale == 1 &&
           (mode.transform != ResizeMode::Transform::crop || (crop_begin == 0 && crop_end == 1));
  }
};

// The node's attributes. Throws ErrorCode::invalid_attribute.
ResizeMode resize_mode(const ir::Node& node);

// All axes of a tensor that the node resizes from shape `in` to `out`. Its inputs roi, scales and sizes may be null.
std::vector<ResizedAxis> axes_to_resize(const ir::Node& node, const ResizeMode& mode, const Shape& in, const Shape& out,
                                        const Tensor* roi, const Tensor* scales, const Tensor* sizes);

// Output o is the sum of weights[o * taps + k] times input indices[o * taps + k]. Where `outside`, which is empty when
// nothing is, it is the extrapolation value.
struct Sampling {
  int64_t taps = 1;
  std::vector<int64_t> indices;
  std::vector<double> weights;
  std::vector<uint8_t> outside;
};

Sampling sample_axis(const ResizeMode& mode, const ResizedAxis& axis);

}  // namespace tenon::ops

#include <algorithm>
#include <cmath>

#include "ops/resize/sampling.h"

namespace tenon::ops {
namespace {

// The coordinate in the input of output x.
double original(const ResizeMode& mode, const ResizedAxis& axis, double x) {
  const double in = static_cast<double>(axis.input), exact = axis.scale * in;
  switch (mode.transform) {
    case ResizeMode::Transform::half_pixel:
      return (x + 0.5) / axis.scale - 0.5;
    case ResizeMode::Transform::half_pixel_symmetric:
      return in / 2 * (1 - static_cast<double>(axis.output) / exact) + (x + 0.5) / axis.scale - 0.5;
    case ResizeMode::Transform::pytorch_half_pixel:
      return exact == 1 ? 0 : (x + 0.5) / axis.scale - 0.5;
    case ResizeMode::Transform::tf_half_pixel:
      return (x + 0.5) / axis.scale;
    case ResizeMode::Transform::align_corners:
      return exact == 1 ? 0 : x * (in - 1) / (exact - 1);
    case ResizeMode::Transform::asymmetric:
      return x / axis.scale;
    case ResizeMode::Transform::crop: {
      const double size = (axis.crop_end - axis.crop_begin) * (in - 1);
      return axis.crop_begin * (in - 1) + (exact == 1 ? size / 2 : x * size / (exact - 1));
    }
  }
  return 0;
}

int64_t nearest_index(ResizeMode::Nearest rounding, double x) {
  const double below = std::floor(x), ratio = x - below;
  bool up = ratio > 0;
  switch (rounding) {
    case ResizeMode::Nearest::round_prefer_floor:
      up = ratio > 0.5;
      break;
    case ResizeMode::Nearest::round_prefer_ceil:
      up = ratio >= 0.5;
      break;
    case ResizeMode::Nearest::floor:
      up = false;
      break;
    case ResizeMode::Nearest::ceil:
      break;
  }
  return static_cast<int64_t>(below) + up;
}

double cubic(double x, double a) {
  x = std::fabs(x);
  if (x <= 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
  return x < 2 ? ((a * x - 5 * a) * x + 8 * a) * x - 4 * a : 0;
}

double triangle(double x) { return std::max(0.0, 1 - std::fabs(x)); }

}  // namespace

Sampling sample_axis(const ResizeMode& mode, const ResizedAxis& axis) {
  const bool is_nearest = mode.filter == ResizeMode::Filter::nearest,
             is_cubic = mode.filter == ResizeMode::Filter::cubic;
  // Smoothing widens the filter when the axis shrinks.
  const double spread = mode.antialias ? std::min(axis.scale, 1.0) : 1.0;
  const int64_t first = static_cast<int64_t>(std::floor((is_cubic ? -2 : -1) / spread)) + 1;
  Sampling result;
  result.taps = is_nearest ? 1 : 2 - 2 * first;
  const auto taps = static_cast<size_t>(result.taps), outputs = static_cast<size_t>(axis.output);
  result.indices.resize(taps * outputs);
  result.weights.resize(taps * outputs, 1);
  if (mode.transform == ResizeMode::Transform::crop) result.outside.resize(outputs);
  const double limit = static_cast<double>(axis.input) + static_cast<double>(result.taps) + 2;
  for (size_t o = 0; o < outputs; ++o) {
    double x = original(mode, axis, static_cast<double>(o));
    if (!result.outside.empty()) result.outside[o] = !(x >= 0 && x <= static_cast<double>(axis.input - 1));
    // Coordinates far outside read the border all the same.
    x = std::isnan(x) ? 0 : std::clamp(x, -limit, limit);
    int64_t* indices = result.indices.data() + o * taps;
    if (is_nearest) {
      *indices = std::clamp<int64_t>(nearest_index(mode.nearest, x), 0, axis.input - 1);
      continue;
    }
    const double base = std::ceil(x) - 1, ratio = x - base;
    double* weights = result.weights.data() + o * taps;
    double sum = 0;
    for (size_t k = 0; k < taps; ++k) {
      const double offset = (static_cast<double>(first) + static_cast<double>(k) - ratio) * spread;
      const int64_t index = static_cast<int64_t>(base) + first + static_cast<int64_t>(k);
      weights[k] = is_cubic ? cubic(offset, mode.cubic_coefficient) : triangle(offset);
      if (mode.exclude_outside && (index < 0 || index >= axis.input)) weights[k] = 0;
      sum += weights[k];
      indices[k] = std::clamp<int64_t>(index, 0, axis.input - 1);
    }
    if (!mode.antialias && !mode.exclude_outside) continue;
    for (size_t k = 0; k < taps; ++k) weights[k] /= sum == 0 ? 1 : sum;
  }
  return result;
}

}  // namespace tenon::ops

#include "tenon/tools/compare_values.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>
#include <vector>

#include "base/fail.h"
#include "tensor/element_value.h"

namespace tenon::tools {
namespace {

std::string index_text(const Shape& shape, int64_t flat) {
  Shape index(shape.rank(), 0);
  for (int axis = shape.rank() - 1; axis >= 0; --axis) {
    index[axis] = flat % shape[axis];
    flat /= shape[axis];
  }
  return index.to_string();
}

double distance(const Tensor& a, const Tensor& b, int64_t i) {
  auto at = static_cast<size_t>(i);
  if (a.type() == ElementType::complex64)
    return std::abs(a.data<std::complex<float>>()[at] - b.data<std::complex<float>>()[at]);
  if (a.type() == ElementType::complex128)
    return std::abs(a.data<std::complex<double>>()[at] - b.data<std::complex<double>>()[at]);
  return std::fabs(element_as_double(a, i) - element_as_double(b, i));
}

std::string tensor_difference(const Tensor& actual, const Tensor& expected, const Tolerance& tolerance) {
  if (actual.type() != expected.type())
    return fmt::format("expected {}, got {}", name_of(expected.type()), name_of(actual.type()));
  if (!(actual.shape() == expected.shape())) {
    return fmt::format("expected shape {}, got {}", expected.shape().to_string(), actual.shape().to_string());
  }
  if (identical(actual, expected)) return {};
  bool strings = expected.type() == ElementType::string;
  int64_t wrong = 0, worst = -1;
  double max_absolute = 0, max_relative = 0, worst_excess = -1;
  for (int64_t i = 0; i < expected.elements(); ++i) {
    double x = element_as_double(actual, i), y = element_as_double(expected, i);
    double excess = 0;
    if (strings) {
      excess =
          actual.data<std::string>()[static_cast<size_t>(i)] == expected.data<std::string>()[static_cast<size_t>(i)]
              ? 0
              : 1;
    } else if (std::isnan(x) || std::isnan(y)) {
      excess = std::isnan(x) == std::isnan(y) ? 0 : INFINITY;
    } else if (std::isinf(x) || std::isinf(y)) {
      excess = x == y ? 0 : INFINITY;
    } else {
      double off = distance(actual, expected, i);
      max_absolute = std::max(max_absolute, off);
      if (y != 0) max_relative = std::max(max_relative, off / std::fabs(y));
      excess = std::max(0.0, off - (tolerance.absolute + tolerance.relative * std::fabs(y)));
    }
    if (excess > 0) {
      ++wrong;
      if (excess > worst_excess) {
        worst_excess = excess;
        worst = i;
      }
    }
  }
  if (wrong == 0) return {};
  return fmt::format(
      "{} of {} elements differ; max abs error {:.3g}, max rel error {:.3g}; worst at {}: expected {}, got {}", wrong,
      expected.elements(), max_absolute, max_relative, index_text(expected.shape(), worst),
      element_as_text(expected, worst), element_as_text(actual, worst));
}

Tensor picked(const Tensor& from, const std::vector<size_t>& order) {
  Tensor result(from.type(), from.shape());
  if (from.type() == ElementType::string) {
    for (size_t i = 0; i < order.size(); ++i)
      result.mutable_data<std::string>()[i] = from.data<std::string>()[order[i]];
    return result;
  }
  const auto size = static_cast<size_t>(bits_of(from.type()) / 8);
  for (size_t i = 0; i < order.size(); ++i) {
    std::memcpy(static_cast<std::byte*>(result.mutable_raw()) + i * size,
                static_cast<const std::byte*>(from.raw()) + order[i] * size, size);
  }
  return result;
}

// With its entries in the order of the keys: the order they have means nothing.
Map sorted(const Map& map) {
  if (map.keys.elements() != map.values.elements()) return map;
  std::vector<size_t> order(static_cast<size_t>(map.keys.elements()));
  std::iota(order.begin(), order.end(), size_t{0});
  if (map.keys.type() == ElementType::string)
    std::ranges::stable_sort(order, {}, [&](size_t i) { return map.keys.data<std::string>()[i]; });
  else
    std::ranges::stable_sort(order, {}, [&](size_t i) { return element_as_double(map.keys, static_cast<int64_t>(i)); });
  return {picked(map.keys, order), picked(map.values, order)};
}

double largest(const Value& value) {
  double result = 0;
  auto take = [&](auto numbers) {
    for (auto number : numbers) {
      double size = 0;
      if constexpr (std::is_floating_point_v<decltype(number)>)
        size = std::abs(static_cast<double>(number));
      else
        size = std::abs(static_cast<double>(static_cast<float>(number)));
      if (std::isfinite(size)) result = std::max(result, size);
    }
  };
  if (value.is_tensor() && value.tensor().type() == ElementType::float32) take(value.tensor().data<float>());
  if (value.is_tensor() && value.tensor().type() == ElementType::float64) take(value.tensor().data<double>());
  if (value.is_tensor() && value.tensor().type() == ElementType::float16) take(value.tensor().data<float16>());
  if (value.is_tensor() && value.tensor().type() == ElementType::bfloat16) take(value.tensor().data<bfloat16>());
  return result;
}

}  // namespace

std::string difference(const Value& actual, const Value& expected, const Tolerance& tolerance) {
  if (expected.is_tensor() && actual.is_tensor())
    return tensor_difference(actual.tensor(), expected.tensor(), tolerance);
  if (expected.is_sequence() && actual.is_sequence()) {
    const auto& a = actual.sequence().items;
    const auto& e = expected.sequence().items;
    if (a.size() != e.size()) return fmt::format("expected a sequence of {}, got one of {}", e.size(), a.size());
    for (size_t i = 0; i < e.size(); ++i) {
      if (std::string text = difference(a[i], e[i], tolerance); !text.empty())
        return fmt::format("item {}: {}", i, text);
    }
    return {};
  }
  if (expected.is_optional() && actual.is_optional()) {
    const auto& a = actual.optional().item;
    const auto& e = expected.optional().item;
    if (!a && !e) return {};
    if (a && e) return difference(*a, *e, tolerance);
  }
  if (expected.is_map() && actual.is_map()) {
    const Map a = sorted(actual.map()), e = sorted(expected.map());
    std::string keys = tensor_difference(a.keys, e.keys, tolerance);
    if (!keys.empty()) return "keys: " + keys;
    return tensor_difference(a.values, e.values, tolerance);
  }
  // An optional that holds something may be given as the thing itself.
  if (expected.is_optional() && expected.optional().item && !actual.is_optional())
    return difference(actual, *expected.optional().item, tolerance);
  if (actual.is_optional() && actual.optional().item && !expected.is_optional())
    return difference(*actual.optional().item, expected, tolerance);
  return fmt::format("expected {}, got {}", expected.describe(), actual.describe());
}

double largest_difference(const NamedValues& actual, const NamedValues& expected) {
  double difference = 0, size = 0;
  for (const auto& [name, value] : expected) {
    const auto found = actual.find(name);
    if (found == actual.end() || !value.is_tensor() || !is_floating(value.tensor().type())) continue;
    const Tensor &a = found->second.tensor(), &b = value.tensor();
    if (!(a.shape() == b.shape())) return INFINITY;
    for (int64_t i = 0; i < b.elements(); ++i) {
      const double x = element_as_double(a, i), y = element_as_double(b, i);
      if (std::isfinite(x) && std::isfinite(y)) {
        difference = std::max(difference, std::fabs(x - y));
        size = std::max(size, std::fabs(y));
      } else if (x != y && !(std::isnan(x) && std::isnan(y))) {
        return INFINITY;
      }
    }
  }
  return size == 0 ? difference : difference / size;
}

std::string difference_by_size(const Value& actual, const Value& expected, const Tolerance& tolerance) {
  return difference(actual, expected, {0, tolerance.absolute + tolerance.relative * largest(expected)});
}

}  // namespace tenon::tools

#include "tenon/tools/tensor_stats.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "tensor/element_value.h"

namespace tenon::tools {
namespace {

template <typename T, typename See>
void see_all(const Tensor& tensor, See see) {
  for (const T& element : tensor.data<T>()) {
    if constexpr (std::is_same_v<T, std::complex<float>> || std::is_same_v<T, std::complex<double>>)
      see(static_cast<double>(std::abs(element)));
    else if constexpr (std::is_arithmetic_v<T>)
      see(static_cast<double>(element));
    else
      see(static_cast<double>(static_cast<float>(element)));
  }
}

// Calls see(double) for every element but strings: fast for the types that large tensors have.
template <typename See>
void for_each_number(const Tensor& tensor, See see) {
  switch (tensor.type()) {
    case ElementType::float32:
      return see_all<float>(tensor, see);
    case ElementType::float64:
      return see_all<double>(tensor, see);
    case ElementType::float16:
      return see_all<float16>(tensor, see);
    case ElementType::bfloat16:
      return see_all<bfloat16>(tensor, see);
    case ElementType::int64:
      return see_all<int64_t>(tensor, see);
    case ElementType::int8:
      return see_all<int8_t>(tensor, see);
    case ElementType::uint8:
      return see_all<uint8_t>(tensor, see);
    case ElementType::complex64:
      return see_all<std::complex<float>>(tensor, see);
    case ElementType::complex128:
      return see_all<std::complex<double>>(tensor, see);
    case ElementType::string:
    case ElementType::undefined:
      return;
    default:
      for (int64_t i = 0; i < tensor.elements(); ++i) see(element_as_double(tensor, i));
  }
}

}  // namespace

NotFinite count_not_finite(const Tensor& tensor) {
  NotFinite count;
  const bool is_complex = tensor.type() == ElementType::complex64 || tensor.type() == ElementType::complex128;
  if (!is_floating(tensor.type()) && !is_complex) return count;
  for_each_number(tensor, [&](double x) {
    count.nans += std::isnan(x);
    count.infinities += std::isinf(x);
  });
  return count;
}

TensorStats tensor_stats(const Tensor& tensor) {
  TensorStats stats;
  stats.elements = tensor.elements();
  double sum = 0, low = INFINITY, high = -INFINITY;
  for_each_number(tensor, [&](double x) {
    stats.nans += std::isnan(x);
    stats.infinities += std::isinf(x);
    stats.zeros += x == 0;
    if (!std::isfinite(x)) return;
    ++stats.finite_numbers;
    sum += x;
    low = std::min(low, x);
    high = std::max(high, x);
  });
  if (stats.finite_numbers == 0) return stats;
  const auto count = static_cast<double>(stats.finite_numbers);
  stats.min = low;
  stats.max = high;
  stats.mean = sum / count;
  double squares = 0;
  for_each_number(tensor, [&](double x) {
    if (std::isfinite(x)) squares += (x - stats.mean) * (x - stats.mean);
  });
  stats.std = std::sqrt(squares / count);
  return stats;
}

std::string to_text(const TensorStats& stats) {
  std::string text;
  const auto add = [&](const std::string& part) { text += (text.empty() ? "" : ", ") + part; };
  if (stats.finite_numbers > 0)
    add(fmt::format("min {:.6g}, max {:.6g}, mean {:.6g}, std {:.6g}", stats.min, stats.max, stats.mean, stats.std));
  if (stats.zeros > 0) add(fmt::format("{} zero{}", stats.zeros, stats.zeros == 1 ? "" : "s"));
  if (stats.nans > 0) add(fmt::format("{} NaN", stats.nans));
  if (stats.infinities > 0) add(fmt::format("{} infinite", stats.infinities));
  return text;
}

}  // namespace tenon::tools

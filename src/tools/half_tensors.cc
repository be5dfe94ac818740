#include "tools/half_tensors.h"

#include <algorithm>
#include <cmath>

#include "base/fail.h"

namespace tenon::tools {

bool is_half(ElementType type) { return type == ElementType::float16 || type == ElementType::bfloat16; }

double largest_of(ElementType type) { return type == ElementType::float16 ? 65504.0 : 3.3895313892515355e38; }

namespace {

template <typename From, typename To>
Tensor cast_as(const Tensor& tensor) {
  Tensor result(element_type_of<To>, tensor.shape());
  std::ranges::transform(tensor.data<From>(), result.mutable_data<To>().begin(),
                         [](From number) { return static_cast<To>(static_cast<float>(number)); });
  return result;
}

template <typename To>
Tensor cast_to(const Tensor& tensor) {
  switch (tensor.type()) {
    case ElementType::float32:
      return cast_as<float, To>(tensor);
    case ElementType::float16:
      return cast_as<float16, To>(tensor);
    case ElementType::bfloat16:
      return cast_as<bfloat16, To>(tensor);
    default:
      fail(ErrorCode::internal, "{} is not cast", name_of(tensor.type()));
  }
}

template <typename Half>
std::string why_not(const Tensor& tensor) {
  constexpr double most_that_vanish = 0.1;  // of the numbers that are not 0
  int64_t too_large = 0, vanished = 0, not_zero = 0;
  for (float number : tensor.data<float>()) {
    const auto rounded = static_cast<float>(static_cast<Half>(number));
    too_large += std::isfinite(number) && !std::isfinite(rounded);
    vanished += number != 0 && rounded == 0;
    not_zero += number != 0;
  }
  const std::string_view type = name_of(element_type_of<Half>);
  if (too_large) return fmt::format("{} of its {} numbers are too large for {}", too_large, tensor.elements(), type);
  if (static_cast<double>(vanished) > most_that_vanish * static_cast<double>(not_zero))
    return fmt::format("{} of its {} numbers would be 0 in {}", vanished, tensor.elements(), type);
  return "";
}

}  // namespace

Tensor cast_floats(const Tensor& tensor, ElementType to) {
  if (tensor.type() == to) return tensor;
  if (to == ElementType::float16) return cast_to<float16>(tensor);
  return to == ElementType::bfloat16 ? cast_to<bfloat16>(tensor) : cast_to<float>(tensor);
}

std::string why_not_half(const Tensor& tensor, ElementType to) {
  return to == ElementType::float16 ? why_not<float16>(tensor) : why_not<bfloat16>(tensor);
}

double rounding_of(ElementType type) { return type == ElementType::float16 ? 0x1p-11 : 0x1p-8; }

double largest_rounding_error(const Tensor& tensor, ElementType to) {
  const Tensor rounded = cast_floats(cast_floats(tensor, to), ElementType::float32);
  const auto numbers = tensor.data<float>(), near = rounded.data<float>();
  double largest = 0;
  for (size_t i = 0; i < numbers.size(); ++i) {
    const double error = std::abs(static_cast<double>(numbers[i]) - static_cast<double>(near[i]));
    largest = std::max(largest, std::isnan(error) ? 0 : error);
  }
  return largest;
}

double largest_magnitude(const Tensor& tensor) {
  float largest = 0;
  for (float number : tensor.data<float>()) {
    if (std::isfinite(number)) largest = std::max(largest, std::abs(number));
  }
  return largest;
}

}  // namespace tenon::tools

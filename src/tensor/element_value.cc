#include "tensor/element_value.h"

#include <fmt/core.h>

#include <cmath>

namespace tenon {
namespace {

int sign_extend(uint8_t code, int bits) { return code >= 1 << (bits - 1) ? code - (1 << bits) : code; }

template <typename T>
double real_at(const Tensor& tensor, int64_t i) {
  return static_cast<double>(tensor.data<T>()[static_cast<size_t>(i)]);
}

template <typename T>
double small_at(const Tensor& tensor, int64_t i) {
  return static_cast<float>(tensor.data<T>()[static_cast<size_t>(i)]);
}

}  // namespace

double element_as_double(const Tensor& tensor, int64_t i) {
  auto packed = [&](int bits) { return load_packed(tensor.raw(), bits, i); };
  switch (tensor.type()) {
    case ElementType::float32:
      return real_at<float>(tensor, i);
    case ElementType::float64:
      return real_at<double>(tensor, i);
    case ElementType::uint8:
      return real_at<uint8_t>(tensor, i);
    case ElementType::int8:
      return real_at<int8_t>(tensor, i);
    case ElementType::uint16:
      return real_at<uint16_t>(tensor, i);
    case ElementType::int16:
      return real_at<int16_t>(tensor, i);
    case ElementType::uint32:
      return real_at<uint32_t>(tensor, i);
    case ElementType::int32:
      return real_at<int32_t>(tensor, i);
    case ElementType::uint64:
      return real_at<uint64_t>(tensor, i);
    case ElementType::int64:
      return real_at<int64_t>(tensor, i);
    case ElementType::boolean:
      return static_cast<const uint8_t*>(tensor.raw())[i] != 0;
    case ElementType::float16:
      return small_at<float16>(tensor, i);
    case ElementType::bfloat16:
      return small_at<bfloat16>(tensor, i);
    case ElementType::float8e4m3fn:
      return small_at<float8e4m3fn>(tensor, i);
    case ElementType::float8e4m3fnuz:
      return small_at<float8e4m3fnuz>(tensor, i);
    case ElementType::float8e5m2:
      return small_at<float8e5m2>(tensor, i);
    case ElementType::float8e5m2fnuz:
      return small_at<float8e5m2fnuz>(tensor, i);
    case ElementType::float8e8m0:
      return small_at<float8e8m0>(tensor, i);
    case ElementType::complex64:
      return tensor.data<std::complex<float>>()[static_cast<size_t>(i)].real();
    case ElementType::complex128:
      return tensor.data<std::complex<double>>()[static_cast<size_t>(i)].real();
    case ElementType::uint4:
      return packed(4);
    case ElementType::int4:
      return sign_extend(packed(4), 4);
    case ElementType::uint2:
      return packed(2);
    case ElementType::int2:
      return sign_extend(packed(2), 2);
    case ElementType::float4e2m1:
      return decode_small_float(float4e2m1::format, packed(4));
    case ElementType::float6e2m3:
      return decode_small_float(float6e2m3::format, packed(6));
    case ElementType::float6e3m2:
      return decode_small_float(float6e3m2::format, packed(6));
    case ElementType::string:
    case ElementType::undefined:
      break;
  }
  return std::nan("");
}

std::string element_as_text(const Tensor& tensor, int64_t i) {
  auto at = static_cast<size_t>(i);
  switch (tensor.type()) {
    case ElementType::string:
      return "\"" + tensor.data<std::string>()[at] + "\"";
    case ElementType::boolean:
      return element_as_double(tensor, i) != 0 ? "true" : "false";
    case ElementType::int64:
      return std::to_string(tensor.data<int64_t>()[at]);
    case ElementType::uint64:
      return std::to_string(tensor.data<uint64_t>()[at]);
    case ElementType::complex64: {
      auto value = tensor.data<std::complex<float>>()[at];
      return fmt::format("{:g}{:+g}i", value.real(), value.imag());
    }
    case ElementType::complex128: {
      auto value = tensor.data<std::complex<double>>()[at];
      return fmt::format("{:g}{:+g}i", value.real(), value.imag());
    }
    default:
      return fmt::format("{:.6g}", element_as_double(tensor, i));
  }
}

}  // namespace tenon

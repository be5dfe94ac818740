#pragma once

#include <bit>
#include <cmath>
#include <complex>
#include <cstdint>
#include <limits>
#include <string>

#include "tenon/element_type.h"

namespace tenon {

// IEEE half precision. Converts through float; rounds to nearest, ties to even.
struct float16 {
  uint16_t bits = 0;

  float16() = default;
  explicit float16(float value);
  explicit operator float() const;
  static constexpr float16 from_bits(uint16_t bits) {
    float16 result;
    result.bits = bits;
    return result;
  }
};

// The upper half of a float. Rounds to nearest, ties to even.
struct bfloat16 {
  uint16_t bits = 0;

  bfloat16() = default;
  explicit bfloat16(float value) {
    uint32_t u = std::bit_cast<uint32_t>(value);
    bits = value != value ? static_cast<uint16_t>((u >> 16) | 0x40)
                          : static_cast<uint16_t>((u + 0x7fff + ((u >> 16) & 1)) >> 16);
  }
  explicit operator float() const { return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16); }
  static constexpr bfloat16 from_bits(uint16_t bits) {
    bfloat16 result;
    result.bits = bits;
    return result;
  }
};

inline float16::float16(float value) {
#ifdef __ARM_FP16_FORMAT_IEEE
  bits = std::bit_cast<uint16_t>(static_cast<__fp16>(value));
#else
  // Scaling by powers of two lets the float unit do the rounding; written without branches so that loops vectorise.
  uint32_t u = std::bit_cast<uint32_t>(value);
  uint32_t sign = (u >> 16) & 0x8000u;
  float magnitude = std::bit_cast<float>(u & 0x7fffffffu);
  float base = (magnitude * 0x1.0p+112f) * 0x1.0p-110f;
  uint32_t shifted = u + u;
  uint32_t exponent = shifted & 0xff000000u;
  if (exponent < 0x71000000u) exponent = 0x71000000u;
  base = std::bit_cast<float>((exponent >> 1) + 0x07800000u) + base;
  uint32_t result = std::bit_cast<uint32_t>(base);
  uint32_t half = ((result >> 13) & 0x00007c00u) + (result & 0x00000fffu);
  bits = static_cast<uint16_t>(sign | (shifted > 0xff000000u ? 0x7e00u : half));
#endif
}

inline float16::operator float() const {
#ifdef __ARM_FP16_FORMAT_IEEE
  return static_cast<float>(std::bit_cast<__fp16>(bits));
#else
  uint32_t wide = static_cast<uint32_t>(bits) << 16;
  uint32_t sign = wide & 0x80000000u;
  uint32_t twice = wide + wide;
  float normal = std::bit_cast<float>((twice >> 4) + (0xe0u << 23)) * 0x1.0p-112f;
  float denormal = std::bit_cast<float>((twice >> 17) | (126u << 23)) - 0.5f;
  uint32_t magnitude = twice < (1u << 27) ? std::bit_cast<uint32_t>(denormal) : std::bit_cast<uint32_t>(normal);
  return std::bit_cast<float>(sign | magnitude);
#endif
}

// The formats below 16 bits: how many bits the exponent and mantissa have, and what the top codes mean.
struct SmallFloatFormat {
  int exponent_bits;
  int mantissa_bits;
  int bias;
  bool has_sign;
  bool has_infinity;
  enum Nan : uint8_t { none, all_ones, negative_zero, ieee } nan;
};

float decode_small_float(const SmallFloatFormat& format, uint8_t bits);
// Rounds to nearest, ties to even. Values beyond the largest finite one become it when `saturate`, else infinity or NaN
// as the format has them.
uint8_t encode_small_float(const SmallFloatFormat& format, float value, bool saturate);

// An 8-bit (or narrower, one per byte) float stored as its code.
template <ElementType type>
struct SmallFloat {
  uint8_t bits = 0;

  static const SmallFloatFormat format;
  SmallFloat() = default;
  explicit SmallFloat(float value, bool saturate = true) : bits(encode_small_float(format, value, saturate)) {}
  explicit operator float() const { return decode_small_float(format, bits); }
};

using float8e4m3fn = SmallFloat<ElementType::float8e4m3fn>;
using float8e4m3fnuz = SmallFloat<ElementType::float8e4m3fnuz>;
using float8e5m2 = SmallFloat<ElementType::float8e5m2>;
using float8e5m2fnuz = SmallFloat<ElementType::float8e5m2fnuz>;
using float8e8m0 = SmallFloat<ElementType::float8e8m0>;
using float6e2m3 = SmallFloat<ElementType::float6e2m3>;
using float6e3m2 = SmallFloat<ElementType::float6e3m2>;
using float4e2m1 = SmallFloat<ElementType::float4e2m1>;

template <>
const SmallFloatFormat float8e4m3fn::format;
template <>
const SmallFloatFormat float8e4m3fnuz::format;
template <>
const SmallFloatFormat float8e5m2::format;
template <>
const SmallFloatFormat float8e5m2fnuz::format;
template <>
const SmallFloatFormat float8e8m0::format;
template <>
const SmallFloatFormat float6e2m3::format;
template <>
const SmallFloatFormat float6e3m2::format;
template <>
const SmallFloatFormat float4e2m1::format;

// The element type whose tensors hold C++ values of type T one after the other.
template <typename T>
inline constexpr ElementType element_type_of = ElementType::undefined;
template <>
inline constexpr ElementType element_type_of<float> = ElementType::float32;
template <>
inline constexpr ElementType element_type_of<double> = ElementType::float64;
template <>
inline constexpr ElementType element_type_of<uint8_t> = ElementType::uint8;
template <>
inline constexpr ElementType element_type_of<int8_t> = ElementType::int8;
template <>
inline constexpr ElementType element_type_of<uint16_t> = ElementType::uint16;
template <>
inline constexpr ElementType element_type_of<int16_t> = ElementType::int16;
template <>
inline constexpr ElementType element_type_of<uint32_t> = ElementType::uint32;
template <>
inline constexpr ElementType element_type_of<int32_t> = ElementType::int32;
template <>
inline constexpr ElementType element_type_of<uint64_t> = ElementType::uint64;
template <>
inline constexpr ElementType element_type_of<int64_t> = ElementType::int64;
template <>
inline constexpr ElementType element_type_of<bool> = ElementType::boolean;
template <>
inline constexpr ElementType element_type_of<std::string> = ElementType::string;
template <>
inline constexpr ElementType element_type_of<std::complex<float>> = ElementType::complex64;
template <>
inline constexpr ElementType element_type_of<std::complex<double>> = ElementType::complex128;
template <>
inline constexpr ElementType element_type_of<float16> = ElementType::float16;
template <>
inline constexpr ElementType element_type_of<bfloat16> = ElementType::bfloat16;
template <>
inline constexpr ElementType element_type_of<float8e4m3fn> = ElementType::float8e4m3fn;
template <>
inline constexpr ElementType element_type_of<float8e4m3fnuz> = ElementType::float8e4m3fnuz;
template <>
inline constexpr ElementType element_type_of<float8e5m2> = ElementType::float8e5m2;
template <>
inline constexpr ElementType element_type_of<float8e5m2fnuz> = ElementType::float8e5m2fnuz;
template <>
inline constexpr ElementType element_type_of<float8e8m0> = ElementType::float8e8m0;

}  // namespace tenon

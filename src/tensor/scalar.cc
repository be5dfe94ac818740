#include "tenon/scalar.h"

#include <algorithm>

namespace tenon {

using Format = SmallFloatFormat;
template <>
const Format float8e4m3fn::format{4, 3, 7, true, false, Format::all_ones};
template <>
const Format float8e4m3fnuz::format{4, 3, 8, true, false, Format::negative_zero};
template <>
const Format float8e5m2::format{5, 2, 15, true, true, Format::ieee};
template <>
const Format float8e5m2fnuz::format{5, 2, 16, true, false, Format::negative_zero};
template <>
const Format float8e8m0::format{8, 0, 127, false, false, Format::all_ones};
template <>
const Format float6e2m3::format{2, 3, 1, true, false, Format::none};
template <>
const Format float6e3m2::format{3, 2, 3, true, false, Format::none};
template <>
const Format float4e2m1::format{2, 1, 1, true, false, Format::none};

namespace {

int code_bits(const Format& f) { return f.exponent_bits + f.mantissa_bits; }

// The code without sign of the largest finite value.
int largest_finite(const Format& f) {
  int all_ones = (1 << code_bits(f)) - 1;
  if (f.nan == Format::ieee) return all_ones - (1 << f.mantissa_bits);
  if (f.nan == Format::all_ones) return all_ones - 1;
  return all_ones;
}

// Value of a code without sign. A format without mantissa has no zero and no denormals: code e means 2^(e - bias).
double magnitude(const Format& f, int code) {
  int exponent = code >> f.mantissa_bits;
  int mantissa = code & ((1 << f.mantissa_bits) - 1);
  if (f.mantissa_bits == 0) return std::ldexp(1.0, exponent - f.bias);
  if (exponent == 0) return std::ldexp(mantissa, 1 - f.bias - f.mantissa_bits);
  return std::ldexp((1 << f.mantissa_bits) + mantissa, exponent - f.bias - f.mantissa_bits);
}

uint8_t nan_code(const Format& f, int sign) {
  switch (f.nan) {
    case Format::all_ones:
      return static_cast<uint8_t>(sign | ((1 << code_bits(f)) - 1));
    case Format::ieee:
      return static_cast<uint8_t>(sign | ((1 << code_bits(f)) - 1));
    case Format::negative_zero:
      return 0x80;
    case Format::none:
      return static_cast<uint8_t>(1 << code_bits(f));  // negative zero, as ONNX casts it
  }
  return 0;
}

}  // namespace

float decode_small_float(const Format& f, uint8_t bits) {
  int sign_bit = f.has_sign ? 1 << code_bits(f) : 0;
  bool negative = (bits & sign_bit) != 0;
  int code = bits & ((1 << code_bits(f)) - 1);
  if (f.nan == Format::negative_zero && negative && code == 0) return std::numeric_limits<float>::quiet_NaN();
  if (code > largest_finite(f)) {
    bool infinity = f.has_infinity && code == largest_finite(f) + 1;
    float special = infinity ? std::numeric_limits<float>::infinity() : std::numeric_limits<float>::quiet_NaN();
    return negative ? -special : special;
  }
  float value = static_cast<float>(magnitude(f, code));
  return negative ? -value : value;
}

uint8_t encode_small_float(const Format& f, float value, bool saturate) {
  int sign = f.has_sign && std::signbit(value) ? 1 << code_bits(f) : 0;
  if (std::isnan(value)) return nan_code(f, sign);
  int largest = largest_finite(f);
  double wanted = std::fabs(static_cast<double>(value));
  if (!f.has_sign && std::signbit(value) && wanted != 0) return nan_code(f, 0);
  int code;
  if (wanted >= magnitude(f, largest)) {
    double step = magnitude(f, largest) - magnitude(f, largest - 1);
    bool rounds_back = wanted < magnitude(f, largest) + step / 2;
    // A tie at the top goes to the even code: down if the largest code is even.
    if (wanted == magnitude(f, largest) + step / 2) rounds_back = largest % 2 == 0;
    if (f.mantissa_bits == 0) rounds_back = wanted < magnitude(f, largest) * 1.5;
    if (!rounds_back && !saturate) {
      return f.has_infinity ? static_cast<uint8_t>(sign | (largest + 1)) : nan_code(f, sign);
    }
    code = largest;
  } else {
    int low = 0, high = largest;  // magnitude(low) <= wanted < magnitude(high), or wanted below the smallest
    while (high - low > 1) {
      int middle = (low + high) / 2;
      (magnitude(f, middle) <= wanted ? low : high) = middle;
    }
    double below = wanted - magnitude(f, low), above = magnitude(f, high) - wanted;
    code = below < above || (below == above && low % 2 == 0) ? low : high;
  }
  if (code == 0 && f.nan == Format::negative_zero) sign = 0;
  return static_cast<uint8_t>(sign | code);
}

}  // namespace tenon

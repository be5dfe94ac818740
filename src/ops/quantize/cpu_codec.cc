#include <cmath>
#include <limits>

#include "ops/dispatch.h"
#include "ops/quantize/codec.h"
#include "ops/small_floats.h"

namespace tenon::ops {
namespace {

void load_codes(const Tensor& from, int64_t first, int64_t count, float* to) {
  const int bits = bits_of(from.type());
  const SmallFloatFormat* format = small_float_format(from.type());
  float values[256];
  for (int code = 0; code < 1 << bits; ++code) {
    if (format)
      values[code] = decode_small_float(*format, static_cast<uint8_t>(code));
    else
      values[code] = static_cast<float>(is_signed_code(from.type()) && code >> (bits - 1) ? code - (1 << bits) : code);
  }
  const auto* bytes = static_cast<const uint8_t*>(from.raw());
  for (int64_t i = 0; i < count; ++i)
    to[i] = values[bits == 8 ? bytes[first + i] : load_packed(bytes, bits, first + i)];
}

float rounded(float value, float low, float high) {
  float whole = std::nearbyint(value);
  return whole > low ? (whole < high ? whole : high) : low;
}

void store_codes(const float* from, Tensor& to, int64_t first, int64_t count, bool saturate) {
  const int bits = bits_of(to.type());
  const SmallFloatFormat* format = small_float_format(to.type());
  const float low = is_signed_code(to.type()) ? -static_cast<float>(1 << (bits - 1)) : 0;
  const float high = low + static_cast<float>((1 << bits) - 1);
  auto* bytes = static_cast<uint8_t*>(to.mutable_raw());
  for (int64_t i = 0; i < count; ++i) {
    uint8_t code = format ? encode_small_float(*format, from[i], saturate)
                          : static_cast<uint8_t>(static_cast<int>(rounded(from[i], low, high)));
    if (bits == 8)
      bytes[first + i] = code;
    else
      store_packed(bytes, bits, first + i, static_cast<uint8_t>(code & ((1 << bits) - 1)));
  }
}

bool has_codes(ElementType type) { return small_float_format(type) || bits_of(type) < 8; }

}  // namespace

void load_as_float(const Tensor& from, int64_t first, int64_t count, float* to) {
  if (has_codes(from.type())) return load_codes(from, first, count, to);
  dispatch<float, float16, bfloat16, int8_t, uint8_t, int16_t, uint16_t, int32_t>(from.type(), [&]<typename T>() {
    const T* values = from.data<T>().data() + first;
    for (int64_t i = 0; i < count; ++i) to[i] = static_cast<float>(values[i]);
  });
}

void store_from_float(const float* from, Tensor& to, int64_t first, int64_t count, bool saturate) {
  if (has_codes(to.type())) return store_codes(from, to, first, count, saturate);
  dispatch<float, float16, bfloat16, int8_t, uint8_t, int16_t, uint16_t>(to.type(), [&]<typename T>() {
    T* __restrict values = to.mutable_data<T>().data() + first;
    if constexpr (std::is_integral_v<T>) {
      constexpr float low = static_cast<float>(std::numeric_limits<T>::min()),
                      high = static_cast<float>(std::numeric_limits<T>::max());
      for (int64_t i = 0; i < count; ++i) values[i] = static_cast<T>(static_cast<int32_t>(rounded(from[i], low, high)));
    } else {
      for (int64_t i = 0; i < count; ++i) values[i] = static_cast<T>(from[i]);
    }
  });
}

}  // namespace tenon::ops

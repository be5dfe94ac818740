// The text of functions that make 8-bit codes.
#pragma once

#include <string_view>

namespace tenon::ops {

// times and plus round once each, whatever the compiler would like better. code_of<T>: the code of a number of steps
// from the zero point: rounded to even and saturated; the lowest one of NaN.
inline constexpr std::string_view code_functions = R"cuda(
#ifdef TENON_EMULATED
inline float times(float a, float b) { return a * b; }
inline float plus(float a, float b) { return a + b; }
#else
inline float times(float a, float b) { return __fmul_rn(a, b); }
inline float plus(float a, float b) { return __fadd_rn(a, b); }
#endif
// Of at most 22 bits, rounded to even: where a float has no bits for fractions, adding rounds them off.
#define NO_FRACTIONS 12582912.0f
inline i32 nearest_int(float x) { return (i32)(bits_of(plus(x, NO_FRACTIONS)) - bits_of(NO_FRACTIONS)); }
template <typename T> struct LowestCode;
template <> struct LowestCode<i8> { static constexpr i32 value = -128; };
template <> struct LowestCode<u8> { static constexpr i32 value = 0; };
template <typename T> inline i32 code_of(float steps, i32 zero) {
  const float low = (float)(LowestCode<T>::value - zero), high = (float)(LowestCode<T>::value + 255 - zero);
  return nearest_int(fmin(fmax(steps, low), high)) + zero;
}
)cuda";

}  // namespace tenon::ops

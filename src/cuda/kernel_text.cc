#include "cuda/kernel_text.h"

#include <fmt/format.h>

#include <cmath>

namespace tenon::cuda {

std::string_view kernel_prelude() {
  return R"cuda(
typedef signed char i8;
typedef unsigned char u8;
typedef short i16;
typedef unsigned short u16;
typedef int i32;
typedef unsigned u32;
typedef long long i64;
typedef unsigned long long u64;
struct c64 { float re, im; };
struct c128 { double re, im; };
struct f16 { u16 bits; static constexpr bool is_bfloat16 = false; };
struct bf16 { u16 bits; static constexpr bool is_bfloat16 = true; };

#ifdef TENON_EMULATED
inline float widen(f16 x) { emulated::Half h; __builtin_memcpy(&h, &x.bits, 2); return (float)h; }
inline f16 to_f16(float x) { emulated::Half h = (emulated::Half)x; f16 r; __builtin_memcpy(&r.bits, &h, 2); return r; }
inline u32 bits_of(float x) { u32 b; __builtin_memcpy(&b, &x, 4); return b; }
inline float float_of(u32 b) { float x; __builtin_memcpy(&x, &b, 4); return x; }
#else
inline float widen(f16 x) { float r; asm("cvt.f32.f16 %0, %1;" : "=f"(r) : "h"(x.bits)); return r; }
inline f16 to_f16(float x) { f16 r; asm("cvt.rn.f16.f32 %0, %1;" : "=h"(r.bits) : "f"(x)); return r; }
inline u32 bits_of(float x) { return __float_as_uint(x); }
inline float float_of(u32 b) { return __uint_as_float(b); }
#endif
inline float widen(bf16 x) { return float_of((u32)x.bits << 16); }
inline bf16 to_bf16(float x) {
  u32 b = bits_of(x);
  bf16 r;
  r.bits = (b & 0x7fffffff) > 0x7f800000 ? (u16)(b >> 16 | 0x40) : (u16)((b + 0x7fff + (b >> 16 & 1)) >> 16);
  return r;
}
template <typename T> inline T widen(T x) { return x; }

template <typename T> struct WideOf { typedef T type; };
template <> struct WideOf<f16> { typedef float type; };
template <> struct WideOf<bf16> { typedef float type; };
template <typename T> using Wide = typename WideOf<T>::type;

template <typename T> struct Narrow {
  template <typename F> static T from(F x) { return (T)x; }
};
template <> struct Narrow<bool> {
  template <typename F> static bool from(F x) { return x != (F)0; }
};
template <> struct Narrow<f16> {
  template <typename F> static f16 from(F x) { return to_f16((float)x); }
};
template <> struct Narrow<bf16> {
  template <typename F> static bf16 from(F x) { return to_bf16((float)x); }
};
template <typename T, typename F> inline T narrow(F x) { return Narrow<T>::from(x); }

// V elements side by side, read and written as one.
template <typename T, int V> struct alignas(sizeof(T) * V) Pack { T v[V]; };

// Every kernel's first statement: a kernel may have been launched while what was given before it still runs, and waits
// here until that has ended.
inline void begin_kernel() {
#if !defined(TENON_EMULATED) && __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

#define THREAD ((i64)blockIdx.x * blockDim.x + threadIdx.x)
#define THREADS ((i64)gridDim.x * blockDim.x)
#define INFINITE float_of(0x7f800000)
#define NOT_A_NUMBER float_of(0x7fc00000)

template <typename T> inline bool is_nan(T x) { return x != x; }
// NaN where one of them is. Without a branch, which a || would be.
template <typename T> inline T least(T a, T b) { return (a < b) | is_nan(a) ? a : b; }
template <typename T> inline T most(T a, T b) { return (a > b) | is_nan(a) ? a : b; }
#if !defined(TENON_EMULATED) && __CUDA_ARCH__ >= 800
inline float least(float a, float b) { float r; asm("min.NaN.f32 %0, %1, %2;" : "=f"(r) : "f"(a), "f"(b)); return r; }
inline float most(float a, float b) { float r; asm("max.NaN.f32 %0, %1, %2;" : "=f"(r) : "f"(a), "f"(b)); return r; }
#endif
// The larger ones of two elements of 16 bits each, side by side.
template <typename T> inline u32 most_of_pairs(u32 a, u32 b) {
#if !defined(TENON_EMULATED) && __CUDA_ARCH__ >= 800
  u32 r;
  if (T::is_bfloat16)
    asm("max.NaN.bf16x2 %0, %1, %2;" : "=r"(r) : "r"(a), "r"(b));
  else
    asm("max.NaN.f16x2 %0, %1, %2;" : "=r"(r) : "r"(a), "r"(b));
  return r;
#else
  auto larger = [](u32 x, u32 y) { return (u32)narrow<T>(most(widen(T{(u16)x}), widen(T{(u16)y}))).bits; };
  return larger(a, b) | larger(a >> 16, b >> 16) << 16;
#endif
}
template <typename T> inline float real(T x) { return (float)x; }
inline double real(double x) { return x; }
#ifdef TENON_EMULATED
inline float short_reciprocal(float x) { return 1.0f / x; }
inline float short_exp2(float x) { return exp2(x); }
#else
inline float short_reciprocal(float x) { float r; asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(x)); return r; }
inline float short_exp2(float x) { float r; asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(x)); return r; }
#endif
// Gelu to 22 bits of x, which is enough for what is rounded to half precision. `below` is the part of a normal
// distribution that is below -|x| (Abramowitz and Stegun, 26.2.17).
inline float short_gelu(float x) {
  const float t = short_reciprocal(1.0f + 0.2316419f * fabs(x));
  const float sum = ((((0.5307027145f * t - 0.7265760135f) * t + 0.7107068705f) * t - 0.142248368f) * t + 0.127414796f) * t;
  const float below = sum * short_exp2(x * -0.72134752f * x);
  return x * (x < 0 ? below : 1.0f - below);
}
template <typename T> inline T softplus(T x) { return most(x, (T)0) + log1p(exp(-fabs(x))); }
// a to the power of b, in the type of a.
template <typename T, typename E> inline T power(T a, E b) { return (T)pow((double)a, (double)b); }
inline float power(float a, float b) { return b == 2 ? a * a : b == 0.5f ? sqrt(a) : powf(a, b); }
inline double power(double a, double b) { return pow(a, b); }
)cuda";
}

std::string_view type_text(ElementType type) {
  switch (type) {
    case ElementType::float32:
      return "float";
    case ElementType::float64:
      return "double";
    case ElementType::float16:
      return "f16";
    case ElementType::bfloat16:
      return "bf16";
    case ElementType::int8:
      return "i8";
    case ElementType::uint8:
      return "u8";
    case ElementType::int16:
      return "i16";
    case ElementType::uint16:
      return "u16";
    case ElementType::int32:
      return "i32";
    case ElementType::uint32:
      return "u32";
    case ElementType::int64:
      return "i64";
    case ElementType::uint64:
      return "u64";
    case ElementType::boolean:
      return "bool";
    case ElementType::complex64:
      return "c64";
    case ElementType::complex128:
      return "c128";
    default:
      return "u8";
  }
}

std::string_view wide_type_text(ElementType type) {
  return type == ElementType::float16 || type == ElementType::bfloat16 ? "float" : type_text(type);
}

std::string number_text(double number, ElementType type) {
  const bool is_double = type == ElementType::float64;
  const bool is_float = is_double || wide_type_text(type) == "float";
  if (!is_float) return fmt::format("({}){}LL", type_text(type), static_cast<int64_t>(number));
  if (std::isnan(number)) return "NOT_A_NUMBER";
  if (std::isinf(number)) return number > 0 ? "INFINITE" : "(-INFINITE)";
  return fmt::format("({}{:.17g}{})", is_double ? "(double)" : "(float)", number,
                     number == std::floor(number) && std::abs(number) < 1e15 ? ".0" : "");
}

}  // namespace tenon::cuda

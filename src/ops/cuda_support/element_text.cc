#include "ops/cuda_support/element_text.h"

#include "base/fail.h"
#include "ops/small_floats.h"

namespace tenon::ops {
namespace {

bool is_small_int(ElementType type) { return bits_of(type) < 8 && !small_float_format(type); }

// The parts of a format as constants that the functions below use.
std::string format_text(const SmallFloatFormat& f) {
  const int bits = f.exponent_bits + f.mantissa_bits, all_ones = (1 << bits) - 1;
  const int largest = f.nan == SmallFloatFormat::ieee       ? all_ones - (1 << f.mantissa_bits)
                      : f.nan == SmallFloatFormat::all_ones ? all_ones - 1
                                                            : all_ones;
  const bool by_sign = f.nan == SmallFloatFormat::negative_zero;
  const bool has_code = f.nan == SmallFloatFormat::ieee || f.nan == SmallFloatFormat::all_ones;
  return fmt::format(
      "const int mantissa = {}, bias = {}, all_ones = {}, largest = {}, sign_bit = {};\n"
      "  const bool has_infinity = {}, nan_is_negative_zero = {}, has_nan = {};\n  ",
      f.mantissa_bits, f.bias, all_ones, largest, f.has_sign ? 1 << bits : 0, f.has_infinity, by_sign, has_code);
}

// float decode_<name>(u32 code)
std::string decode_text(ElementType type, std::string_view name) {
  if (type == ElementType::float8e8m0)
    return fmt::format(
        "inline float decode_{}(u32 code) {{\n"
        "  return code == 255 ? NOT_A_NUMBER : code == 0 ? float_of(0x400000) : float_of(code << 23);\n}}\n",
        name);
  return fmt::format("inline float decode_{}(u32 code) {{\n  ", name) + format_text(*small_float_format(type)) +
         R"(const u32 magnitude = code & all_ones, exponent = magnitude >> mantissa;
  const bool negative = (code & sign_bit) != 0;
  if (nan_is_negative_zero && negative && magnitude == 0) return NOT_A_NUMBER;
  if (magnitude > largest) return has_infinity && magnitude == largest + 1 ? (negative ? -INFINITE : INFINITE) : NOT_A_NUMBER;
  const u32 fraction = magnitude & ((1u << mantissa) - 1);
  const float value = exponent == 0 ? (float)fraction * float_of((u32)(128 - bias - mantissa) << 23)
                                    : float_of((exponent + 127 - bias) << 23 | fraction << (23 - mantissa));
  return negative ? -value : value;
}
)";
}

// u32 encode_y(float value): to the nearest code, ties to even.
std::string encode_text(ElementType type, bool saturates) {
  if (type == ElementType::float8e8m0)  // of powers of two
    return "inline u32 encode_y(float value) { return value != value ? 255 : bits_of(value) >> 23; }\n";
  return "inline u32 encode_y(float value) {\n  " + format_text(*small_float_format(type)) +
         fmt::format("const bool saturates = {};\n  ", saturates) +
         R"(const u32 bits = bits_of(value), magnitude = bits & 0x7fffffff;
  u32 sign = bits >> 31 ? sign_bit : 0;
  const u32 nan = nan_is_negative_zero ? sign_bit : has_nan ? sign | all_ones : sign_bit;
  if (magnitude > 0x7f800000) return nan;
  int code = largest + 1;
  if (magnitude < 0x7f800000) {
    int exponent = (int)(magnitude >> 23) - 127;
    if (exponent < 1 - bias) exponent = 1 - bias;
    // In steps of the last place.
    const int steps = (int)rint(float_of(magnitude) * float_of((u32)(mantissa - exponent + 127) << 23));
    code = ((exponent + bias - 1) << mantissa) + steps;
  }
  if (code > largest) {
    if (!saturates) return has_infinity ? sign | (largest + 1) : nan;
    code = largest;
  }
  if (code == 0 && nan_is_negative_zero) sign = 0;
  return sign | code;
}
)";
}

}  // namespace

std::string load_text(ElementType type, std::string_view name) {
  const std::string_view memory = cuda::type_text(type);
  const int bits = bits_of(type);
  if (bits >= 8 && !small_float_format(type))
    return fmt::format(
        "typedef {} Memory_{}; typedef Wide<{}> Value_{};\n"
        "inline Value_{} load_{}(const Memory_{}* x, i64 i) {{ return widen(x[i]); }}\n",
        memory, name, memory, name, name, name, name);
  std::string text = fmt::format("typedef u8 Memory_{}; typedef {} Value_{};\n", name,
                                 small_float_format(type) ? "float"
                                 : is_signed_code(type)   ? "i8"
                                                          : "u8",
                                 name);
  std::string code = "x[i]";
  if (bits == 6)
    code = "((x[i * 6 / 8] | (i % 4 == 0 || i % 4 == 3 ? 0 : x[i * 6 / 8 + 1] << 8)) >> i * 6 % 8 & 63)";
  else if (bits < 8)
    code = fmt::format("(x[i / {}] >> i % {} * {} & {})", 8 / bits, 8 / bits, bits, (1 << bits) - 1);
  if (small_float_format(type)) {
    text += decode_text(type, name);
    code = fmt::format("decode_{}({})", name, code);
  } else if (is_signed_code(type)) {
    code = fmt::format("(i8)((i8)({} << {}) >> {})", code, 8 - bits, 8 - bits);
  }
  return text +
         fmt::format("inline Value_{} load_{}(const Memory_{}* x, i64 i) {{ return {}; }}\n", name, name, name, code);
}

CudaLoop element_loop(KernelRun& run, const Tensor& y, std::string_view pointers, std::string_view body,
                      std::vector<int64_t> numbers, std::string_view functions, bool saturates) {
  const ElementType type = y.type();
  const std::string_view memory = cuda::type_text(type);
  const int bits = bits_of(type);
  std::string before = fmt::format("typedef {} Memory_y;\n", memory);
  if (small_float_format(type))
    before += "typedef float Value_y;\n" + encode_text(type, saturates);
  else if (is_small_int(type))
    before +=
        fmt::format("typedef i32 Value_y;\ninline u32 encode_y(i32 value) {{ return value & {}; }}\n", (1 << bits) - 1);
  else
    before += fmt::format("typedef Wide<{}> Value_y;\n", memory);
  const std::string all = fmt::format("Memory_y* y{}{}", pointers.empty() ? "" : ", ", pointers);
  const int64_t count = y.elements();
  if (bits > 8) {
    const std::string text = fmt::format("const i64 e = i; Value_y r;\n    {}\n    y[e] = narrow<Memory_y>(r);", body);
    return {run, count, all, text, std::move(numbers), before + std::string(functions)};
  }
  // A thread writes whole words, or three bytes of four elements of 6 bits.
  const int together = bits == 6 ? 4 : 32 / bits, bytes = together * bits / 8;
  const size_t last = numbers.size();
  numbers.insert(numbers.end(), {count, y.bytes()});
  const std::string code = small_float_format(type) || is_small_int(type) ? "encode_y(r)"
                           : type == ElementType::boolean                 ? "(u32)(r != 0)"
                                                                          : "(u32)(u8)r";
  std::string text = fmt::format(
      "u32 word = 0;\n    for (int g = 0; g < {}; ++g) {{\n    const i64 e = i * {} + g;\n    if (e >= v[{}]) break;\n"
      "    Value_y r;\n    {}\n    word |= {} << g * {};\n    }}\n    u8* to = (u8*)y + i * {};\n    ",
      together, together, last, body, code, bits, bytes);
  if (bytes == 4)
    text +=
        fmt::format("if (((u64)to & 3) == 0 && i * 4 + 4 <= v[{}]) {{ *(u32*)to = word; continue; }}\n    ", last + 1);
  text += fmt::format("for (int k = 0; k < {} && i * {} + k < v[{}]; ++k) to[k] = (u8)(word >> 8 * k);", bytes, bytes,
                      last + 1);
  return {run, (count + together - 1) / together, all, text, std::move(numbers), before + std::string(functions)};
}

std::string_view exact_product_text() {
  return R"(#ifdef TENON_EMULATED
inline float times(float a, float b) { return a * b; }
inline double times(double a, double b) { return a * b; }
#else
inline float times(float a, float b) { return __fmul_rn(a, b); }
inline double times(double a, double b) { return __dmul_rn(a, b); }
#endif
)";
}

std::string_view ordered_text() {
  return R"(
inline u64 ordered(float x) {
  const u32 b = bits_of(x + 0.0f);
  return is_nan(x) ? 0xffffffffu : b >> 31 ? ~b : b | 0x80000000u;
}
inline u64 ordered(double x) {
  x += 0.0;
  u64 b;
  memcpy(&b, &x, 8);
  return is_nan(x) ? ~(u64)0 : b >> 63 ? ~b : b | (u64)1 << 63;
}
inline u64 ordered(i32 x) { return (u32)x ^ 0x80000000u; }
inline u64 ordered(u32 x) { return x; }
inline u64 ordered(i64 x) { return (u64)x ^ (u64)1 << 63; }
inline u64 ordered(u64 x) { return x; }
)";
}

std::string_view to_int_text() {
  return R"(template <typename I> struct ToInt;
template <> struct ToInt<i32> {
  template <typename F> static i32 from(F x) {
    return !(x == x) ? 0 : x <= (F)-2147483648.0 ? (i32)0x80000000 : x >= (F)2147483648.0 ? 0x7fffffff : (i32)x;
  }
};
template <> struct ToInt<i64> {
  template <typename F> static i64 from(F x) {
    return !(x == x)                          ? 0
           : x <= (F)-9223372036854775808.0 ? (i64)0x8000000000000000ull
           : x >= (F)9223372036854775808.0  ? 0x7fffffffffffffffll
                                            : (i64)x;
  }
};
template <> struct ToInt<u64> {
  template <typename F> static u64 from(F x) {
    if (!(x >= (F)9223372036854775808.0)) return (u64)ToInt<i64>::from(x);
    return x < (F)18446744073709551616.0 ? (u64)x : 0xffffffffffffffffull;
  }
};
template <typename I, typename F> inline I to_int(F x) { return ToInt<I>::from(x); }
)";
}

std::string_view index_text(int64_t elements) { return elements < int64_t{1} << 31 ? "u32" : "u64"; }

std::string coordinates_in(std::string_view type, int rank, size_t first, std::string_view index) {
  std::string text = fmt::format("{} rest = ({}){};\n    ", type, type, index);
  for (int axis = rank - 1; axis >= 0; --axis) {
    const size_t size = first + static_cast<size_t>(axis);
    if (axis == 0)
      text += "const i64 c0 = rest;\n    ";
    else
      text += fmt::format("const i64 c{} = rest % ({})v[{}]; rest /= ({})v[{}];\n    ", axis, type, size, type, size);
  }
  return text;
}

int64_t unit_for(int64_t bytes, std::initializer_list<const void*> addresses) {
  int64_t unit = 16;
  while (unit > 1) {
    bool fits = bytes % unit == 0;
    for (const void* address : addresses)
      fits &= reinterpret_cast<uintptr_t>(address) % static_cast<uintptr_t>(unit) == 0;
    if (fits) break;
    unit /= 2;
  }
  return unit;
}

std::string_view unit_text(int64_t unit) {
  switch (unit) {
    case 1:
      return "u8";
    case 2:
      return "u16";
    case 4:
      return "u32";
    case 8:
      return "u64";
    case 16:
      return "Pack<u32, 4>";
    default:
      fail(ErrorCode::internal, "there is no unit of {} bytes", unit);
  }
}

}  // namespace tenon::ops

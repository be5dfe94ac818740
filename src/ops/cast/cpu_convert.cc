#include <bit>
#include <cfenv>
#include <cmath>
#include <cstring>

#include "base/fail.h"
#include "kernels/half/half.h"
#include "kernels/simd/extreme.h"
#include "ops/cast/convert.h"
#include "ops/cast/text.h"
#include "ops/elementwise.h"

namespace tenon::ops {
namespace {

// Elements are converted in blocks small enough to stay in the first-level cache. Types that C++ has no arithmetic for
// are staged: half and smaller floats as float, integers below 8 bits as int8 or uint8.
constexpr int64_t block = 1024;

ElementType stage_of(ElementType type) {
  using enum ElementType;
  switch (type) {
    case int4:
    case int2:
      return int8;
    case uint4:
    case uint2:
      return uint8;
    default:
      return is_floating(type) && type != float64 ? float32 : type;
  }
}

template <typename Integer, typename Float>
Integer clamped(Float x) {
#ifdef __aarch64__
  // Which is what its instructions do.
  return static_cast<Integer>(x);
#else
  constexpr Integer lowest = std::numeric_limits<Integer>::min(), highest = std::numeric_limits<Integer>::max();
  constexpr int lost_bits = std::max(0, std::numeric_limits<Integer>::digits - std::numeric_limits<Float>::digits);
  // The largest value that both types have.
  constexpr Float low = static_cast<Float>(lowest), high = static_cast<Float>(highest >> lost_bits << lost_bits);
  const Float number = x == x ? x : Float(0), above = number > low ? number : low;
  const Integer inside = static_cast<Integer>(above < high ? above : high);
  return above > high ? highest : inside;
#endif
}

// Floats become integers by truncation and then wrap around; those beyond 64 bits (32 for narrow types) end at the
// limits, and NaN becomes 0.
template <typename To, typename From>
To convert_one(From x) {
  if constexpr (std::is_same_v<To, bool>) {
    return x != From(0);
  } else if constexpr (std::is_floating_point_v<From> && std::is_integral_v<To>) {
    if constexpr (std::is_same_v<To, uint64_t>) {
      constexpr From two_to_63 = static_cast<From>(9223372036854775808.0);
      if (x >= two_to_63) return x < 2 * two_to_63 ? static_cast<uint64_t>(x) : std::numeric_limits<uint64_t>::max();
      return static_cast<uint64_t>(clamped<int64_t>(x));
    } else if constexpr (sizeof(To) < 4 || std::is_same_v<To, int32_t>) {
      return static_cast<To>(clamped<int32_t>(x));
    } else {
      return static_cast<To>(clamped<int64_t>(x));
    }
  } else {
    return static_cast<To>(x);
  }
}

using Loop = void (*)(const void* from, void* to, int64_t n);

// Through 32 bits, where all numbers fit into them: false if they do not, and y is not to be used. Converting one that
// does not is an invalid operation, of which the processor keeps a flag.
template <typename To>
bool convert_through_int32(const float* __restrict x, To* __restrict y, int64_t n) {
  std::feclearexcept(FE_INVALID);
  for (int64_t i = 0; i < n; ++i) y[i] = static_cast<To>(static_cast<int32_t>(x[i]));
  return !std::fetestexcept(FE_INVALID);
}

// The low (first = 0) or high (first = 1) halves of 64-bit integers that fill two vectors.
template <int first, typename Ints>
Ints halves_of(Ints a, Ints b) {
  if constexpr (sizeof(Ints) == 16)
    return __builtin_shufflevector(a, b, first, first + 2, first + 4, first + 6);
  else
    return __builtin_shufflevector(a, b, first, first + 2, first + 4, first + 6, first + 8, first + 10, first + 12,
                                   first + 14);
}

using Floats = kernels::VectorOf<float>::Type;
using Ints = kernels::VectorOf<int32_t>::Type;
constexpr int64_t lanes = sizeof(Ints) / sizeof(int32_t);

bool has_any(Ints flags) {
  for (int64_t lane = 0; lane < lanes; ++lane) {
    if (flags[lane]) return true;
  }
  return false;
}

bool convert_through_int32(const int64_t* x, float* y, int64_t n) {
  Ints beyond = {};
  int64_t i = 0;
#pragma GCC unroll 4
  for (; i + lanes <= n; i += lanes) {
    Ints first, second;
    std::memcpy(&first, x + i, sizeof first);
    std::memcpy(&second, x + i + lanes / 2, sizeof second);
    const Ints low = halves_of<0>(first, second), high = halves_of<1>(first, second);
    const Floats result = __builtin_convertvector(low, Floats);
    beyond |= high ^ (low >> 31);
    std::memcpy(y + i, &result, sizeof result);
  }
  if (has_any(beyond)) return false;
  for (; i < n; ++i) y[i] = static_cast<float>(x[i]);
  return true;
}

// Where that vectorises better than limits do.
template <typename From, typename To>
constexpr bool goes_through_int32() {
  if constexpr (std::is_same_v<From, int64_t>) return std::is_same_v<To, float>;
  if constexpr (!std::is_same_v<From, float> || !std::is_integral_v<To> || std::is_same_v<To, bool>) return false;
#ifdef __aarch64__
  return sizeof(To) == 8;
#else
  return true;
#endif
}

template <typename From, typename To>
void plain_loop(const void* from, void* to, int64_t n) {
  const From* __restrict x = static_cast<const From*>(from);
  To* __restrict y = static_cast<To*>(to);
  // The usual case, which vectorises.
  if constexpr (goes_through_int32<From, To>()) {
    if (convert_through_int32(x, y, n)) return;
  }
  for (int64_t i = 0; i < n; ++i) y[i] = convert_one<To>(x[i]);
}

// For integers below 8 bits: to the nearest, ties to even. The low bits of each byte are the result.
template <typename From>
void round_to_bytes(const void* from, void* to, int64_t n) {
  const From* __restrict x = static_cast<const From*>(from);
  uint8_t* __restrict y = static_cast<uint8_t*>(to);
  for (int64_t i = 0; i < n; ++i) y[i] = static_cast<uint8_t>(clamped<int32_t>(std::nearbyint(x[i])));
}

template <typename From, typename... To>
constexpr LoopTable<Loop> loops_from() {
  LoopTable<Loop> table{};
  ((table[static_cast<size_t>(element_type_of<To>)] = plain_loop<From, To>), ...);
  return table;
}

template <typename... Types>
struct PlainLoops {
  static constexpr std::array<LoopTable<Loop>, element_type_count> make() {
    std::array<LoopTable<Loop>, element_type_count> result{};
    ((result[static_cast<size_t>(element_type_of<Types>)] = loops_from<Types, Types...>()), ...);
    // Compilers vectorise bytes, but not bools.
    auto& from_bool = result[static_cast<size_t>(ElementType::boolean)];
    const Loop to_bool = from_bool[static_cast<size_t>(ElementType::boolean)];
    from_bool = result[static_cast<size_t>(ElementType::uint8)];
    from_bool[static_cast<size_t>(ElementType::boolean)] = to_bool;
    return result;
  }
};
constexpr auto plain_loops =
    PlainLoops<float, double, bool, int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t>::make();

// The values of all codes of a format.
template <typename T>
const std::array<float, 256>& decoded() {
  static const std::array<float, 256> table = [] {
    std::array<float, 256> values;
    for (int code = 0; code < 256; ++code)
      values[static_cast<size_t>(code)] = decode_small_float(T::format, static_cast<uint8_t>(code));
    return values;
  }();
  return table;
}

template <typename T>
void unpack_floats(const void* from, int64_t first, int64_t n, int bits, float* to) {
  const std::array<float, 256>& values = decoded<T>();
  if (bits == 8) {
    const uint8_t* codes = static_cast<const uint8_t*>(from) + first;
    for (int64_t i = 0; i < n; ++i) to[i] = values[codes[i]];
  } else {
    for (int64_t i = 0; i < n; ++i) to[i] = values[load_packed(from, bits, first + i)];
  }
}

template <typename T>
void unpack_halves(const void* from, int64_t first, int64_t n, float* to) {
  const T* __restrict x = static_cast<const T*>(from) + first;
  if constexpr (std::is_same_v<T, float16>) return kernels::f16_to_f32(&x->bits, to, n);
  for (int64_t i = 0; i < n; ++i) to[i] = static_cast<float>(x[i]);
}

void unpack_ints(const void* from, int64_t first, int64_t n, int bits, bool has_sign, uint8_t* to) {
  int shift = has_sign ? 8 - bits : 0;
  for (int64_t i = 0; i < n; ++i) {
    int8_t high = static_cast<int8_t>(load_packed(from, bits, first + i) << shift);
    to[i] = static_cast<uint8_t>(has_sign ? high >> shift : high);
  }
}

void unpack(ElementType type, const void* from, int64_t first, int64_t n, void* to) {
  int bits = bits_of(type);
  float* floats = static_cast<float*>(to);
  switch (type) {
    using enum ElementType;
    case float16:
      return unpack_halves<tenon::float16>(from, first, n, floats);
    case bfloat16:
      return unpack_halves<tenon::bfloat16>(from, first, n, floats);
    case float8e4m3fn:
      return unpack_floats<tenon::float8e4m3fn>(from, first, n, bits, floats);
    case float8e4m3fnuz:
      return unpack_floats<tenon::float8e4m3fnuz>(from, first, n, bits, floats);
    case float8e5m2:
      return unpack_floats<tenon::float8e5m2>(from, first, n, bits, floats);
    case float8e5m2fnuz:
      return unpack_floats<tenon::float8e5m2fnuz>(from, first, n, bits, floats);
    case float8e8m0:
      return unpack_floats<tenon::float8e8m0>(from, first, n, bits, floats);
    case float6e2m3:
      return unpack_floats<tenon::float6e2m3>(from, first, n, bits, floats);
    case float6e3m2:
      return unpack_floats<tenon::float6e3m2>(from, first, n, bits, floats);
    case float4e2m1:
      return unpack_floats<tenon::float4e2m1>(from, first, n, bits, floats);
    case int4:
    case int2:
      return unpack_ints(from, first, n, bits, true, static_cast<uint8_t*>(to));
    case uint4:
    case uint2:
      return unpack_ints(from, first, n, bits, false, static_cast<uint8_t*>(to));
    default:
      fail(ErrorCode::unsupported, "cannot convert from {}", name_of(type));
  }
}

template <typename T>
void pack_halves(const float* __restrict from, int64_t n, void* to, int64_t first) {
  T* __restrict y = static_cast<T*>(to) + first;
  if constexpr (std::is_same_v<T, float16>) return kernels::f32_to_f16(from, &y->bits, n);
  for (int64_t i = 0; i < n; ++i) y[i] = T(from[i]);
}

template <typename T>
void pack_floats(const float* from, int64_t n, void* to, int64_t first, int bits, bool saturate) {
  for (int64_t i = 0; i < n; ++i) {
    uint8_t code = encode_small_float(T::format, from[i], saturate);
    if (bits == 8)
      static_cast<uint8_t*>(to)[first + i] = code;
    else
      store_packed(to, bits, first + i, code);
  }
}

// Powers of two: the code is the exponent of a float, 255 means NaN.
uint8_t encode_e8m0(float value, const ConvertOptions& options) {
  uint32_t bits = std::bit_cast<uint32_t>(value);
  if (std::isnan(value)) return 255;
  if (std::isinf(value)) return options.saturate ? 254 : 255;
  uint32_t exponent = bits >> 23 & 0xff, mantissa = bits & 0x7fffff;
  if (exponent == 0) {
    // 2^-127 is a denormal float; what is below it has no code.
    constexpr uint32_t smallest = 0x400000;
    if (mantissa < smallest && !options.saturate && options.round_mode != "up") return 255;
    if (mantissa == 0) return options.saturate ? 0 : 255;
    bool up = mantissa > smallest &&
              (options.round_mode == "up" || (options.round_mode == "nearest" && mantissa >= 0x600000));
    return up ? 1 : 0;
  }
  bool up = options.round_mode == "up" ? mantissa > 0 : options.round_mode == "nearest" && mantissa >= 0x400000;
  if (up && exponent == 254) return options.saturate ? 254 : 255;
  return static_cast<uint8_t>(exponent + (up ? 1 : 0));
}

void pack(ElementType type, const void* from, int64_t n, void* to, int64_t first, const ConvertOptions& options) {
  int bits = bits_of(type);
  const float* floats = static_cast<const float*>(from);
  switch (type) {
    using enum ElementType;
    case float16:
      return pack_halves<tenon::float16>(floats, n, to, first);
    case bfloat16:
      return pack_halves<tenon::bfloat16>(floats, n, to, first);
    case float8e4m3fn:
      return pack_floats<tenon::float8e4m3fn>(floats, n, to, first, bits, options.saturate);
    case float8e4m3fnuz:
      return pack_floats<tenon::float8e4m3fnuz>(floats, n, to, first, bits, options.saturate);
    case float8e5m2:
      return pack_floats<tenon::float8e5m2>(floats, n, to, first, bits, options.saturate);
    case float8e5m2fnuz:
      return pack_floats<tenon::float8e5m2fnuz>(floats, n, to, first, bits, options.saturate);
    case float6e2m3:
      return pack_floats<tenon::float6e2m3>(floats, n, to, first, bits, true);
    case float6e3m2:
      return pack_floats<tenon::float6e3m2>(floats, n, to, first, bits, true);
    case float4e2m1:
      return pack_floats<tenon::float4e2m1>(floats, n, to, first, bits, true);
    case float8e8m0:
      for (int64_t i = 0; i < n; ++i) static_cast<uint8_t*>(to)[first + i] = encode_e8m0(floats[i], options);
      return;
    case int4:
    case int2:
    case uint4:
    case uint2: {
      uint8_t mask = static_cast<uint8_t>((1 << bits) - 1);
      for (int64_t i = 0; i < n; ++i) store_packed(to, bits, first + i, static_cast<const uint8_t*>(from)[i] & mask);
      return;
    }
    default:
      fail(ErrorCode::unsupported, "cannot convert to {}", name_of(type));
  }
}

// Elements of `type` as its stage type; `buffer` is used unless they are in memory as such.
const void* staged(ElementType type, const void* from, int64_t first, int64_t n, void* buffer) {
  if (stage_of(type) == type) return static_cast<const char*>(from) + first * bits_of(type) / 8;
  unpack(type, from, first, n, buffer);
  return buffer;
}

void convert_range(const Tensor& from, ElementType to, void* out, int64_t first, int64_t n,
                   const ConvertOptions& options) {
  alignas(64) char in_buffer[block * 4], out_buffer[block * 4];
  ElementType in_stage = stage_of(from.type()), out_stage = stage_of(to);
  bool direct = out_stage == to;
  void* target = direct ? static_cast<char*>(out) + first * bits_of(to) / 8 : out_buffer;
  if (in_stage == out_stage) {
    // One of both is unpacked into place or packed from it.
    const void* stage = staged(from.type(), from.raw(), first, n, direct ? target : in_buffer);
    if (!direct)
      pack(to, stage, n, out, first, options);
    else if (stage != target)
      std::memcpy(target, stage, static_cast<size_t>(n * bits_of(to) / 8));
    return;
  }
  const void* stage = staged(from.type(), from.raw(), first, n, in_buffer);
  Loop loop = plain_loops[static_cast<size_t>(in_stage)][static_cast<size_t>(out_stage)];
  if (is_floating(in_stage) && !is_floating(to) && bits_of(to) < 8)
    loop = in_stage == ElementType::float64 ? round_to_bytes<double> : round_to_bytes<float>;
  if (!loop) fail(ErrorCode::unsupported, "cannot convert from {} to {}", name_of(from.type()), name_of(to));
  loop(stage, target, n);
  if (!direct) pack(to, out_buffer, n, out, first, options);
}

}  // namespace

void convert_into(const Tensor& from, Tensor& to, ThreadPool& threads, const ConvertOptions& options) {
  if (to.type() == ElementType::string) return numbers_to_text(from, to);
  if (from.type() == ElementType::string) {
    Tensor numbers = text_to_numbers(from, is_floating(to.type()));
    return convert_into(numbers, to, threads, options);
  }
  int64_t count = from.elements();
  void* out = to.mutable_raw();
  // The last byte may be used in part only.
  if (bits_of(to.type()) < 8 && count > 0) static_cast<char*>(out)[to.bytes() - 1] = 0;
  // Without memory in between, more may be converted at a time.
  const bool from_plain = stage_of(from.type()) == from.type(), to_plain = stage_of(to.type()) == to.type();
  const bool in_one_step = stage_of(from.type()) == stage_of(to.type()) && (from_plain || to_plain);
  const int64_t size = in_one_step || (from_plain && to_plain) ? 8 * block : block;
  threads.parallel_for((count + size - 1) / size, 8 * block / size, [&](int64_t begin, int64_t end) {
    if (in_one_step)
      return convert_range(from, to.type(), out, begin * size, std::min(end * size, count) - begin * size, options);
    for (int64_t i = begin; i < end; ++i)
      convert_range(from, to.type(), out, i * size, std::min(size, count - i * size), options);
  });
}

Tensor convert(const Tensor& from, ElementType to, Allocator& allocator) {
  Tensor result(to, from.shape(), allocator);
  convert_into(from, result, *ThreadPool::shared());
  return result;
}

}  // namespace tenon::ops

#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/half/arithmetic.h"
#include "kernels/half/half.h"
#include "kernels/math/math.h"
#include "ops/binary/loops.h"

namespace tenon::ops {
namespace {

// An unsigned type that integer arithmetic wraps around in.
template <typename T>
using Wrapping = std::conditional_t<sizeof(T) < 4, uint32_t,
                                    std::make_unsigned_t<std::conditional_t<std::is_integral_v<T>, T, int>>>;

struct Add {
  template <typename T>
  static T call(T a, T b) {
    if constexpr (std::is_integral_v<T>)
      return static_cast<T>(Wrapping<T>(a) + Wrapping<T>(b));
    else
      return a + b;
  }
};

struct Sub {
  template <typename T>
  static T call(T a, T b) {
    if constexpr (std::is_integral_v<T>)
      return static_cast<T>(Wrapping<T>(a) - Wrapping<T>(b));
    else
      return a - b;
  }
};

struct Mul {
  template <typename T>
  static T call(T a, T b) {
    if constexpr (std::is_integral_v<T>)
      return static_cast<T>(Wrapping<T>(a) * Wrapping<T>(b));
    else
      return a * b;
  }
};

// Of integers: towards zero; by zero it is 0.
struct Div {
  template <typename T>
  static T call(T a, T b) {
    if constexpr (std::is_integral_v<T>) {
      if (b == 0) return 0;
      if (std::is_signed_v<T> && b == static_cast<T>(-1)) return Sub::call(T(0), a);
      return static_cast<T>(a / b);
    } else {
      return a / b;
    }
  }
};

// As std::fmod. A quotient of few bits has a product with b, and a rest, that double holds: nothing is rounded.
inline float remainder_of(float a, float b) {
  constexpr double most = 0x1p28;
  const double quotient = static_cast<double>(a) / b;
  if (!(std::fabs(quotient) < most && std::fabs(b) <= std::numeric_limits<float>::max())) return std::fmod(a, b);
  const double whole = static_cast<double>(static_cast<int64_t>(quotient));
  return std::copysign(static_cast<float>(a - whole * b), a);
}
inline double remainder_of(double a, double b) { return std::fmod(a, b); }

// With the sign of the dividend. Of integers: by zero it is 0.
struct TruncatedMod {
  template <typename T>
  static T call(T a, T b) {
    if constexpr (std::is_integral_v<T>) {
      if (b == 0 || (std::is_signed_v<T> && b == static_cast<T>(-1))) return 0;
      return static_cast<T>(a % b);
    } else {
      return remainder_of(a, b);
    }
  }
};

// With the sign of the divisor.
struct FloorMod {
  template <typename T>
  static T call(T a, T b) {
    T rest = TruncatedMod::call(a, b);
    if constexpr (std::is_unsigned_v<T>) return rest;
    if constexpr (std::is_integral_v<T>) {
      // Without branches, which nobody can foresee.
      const bool differs = ((rest < 0) != (b < 0)) & (rest != 0);
      return static_cast<T>(rest + (differs ? b : T(0)));
    }
    if (rest != 0) return (rest < 0) != (b < 0) ? static_cast<T>(rest + b) : rest;
    if constexpr (std::is_floating_point_v<T>) rest = std::copysign(rest, b);
    return rest;
  }
};

struct PRelu {
  template <typename T>
  static T call(T x, T slope) {
    return x < 0 ? Mul::call(x, slope) : x;
  }
};

// Of integers: wraps around; to a negative power it is what truncation leaves of the quotient, and 0 for 0.
struct Pow {
  template <typename T>
  static T call(T base, T power) {
    if constexpr (std::is_integral_v<T>) {
      if (power < 0) return base == 1 ? 1 : base == -1 ? (power % 2 ? -1 : 1) : 0;
      Wrapping<T> result = 1, factor = static_cast<Wrapping<T>>(base);
      for (T rest = power; rest; rest /= 2, factor *= factor) {
        if (rest % 2) result *= factor;
      }
      return static_cast<T>(result);
    } else {
      return std::pow(base, power);
    }
  }
};

struct Square {
  template <typename T>
  static T call(T x, T) {
    return x * x;
  }
};

struct SquareRoot {
  template <typename T>
  static T call(T x, T) {
    return std::sqrt(x);
  }
};

template <typename F>
constexpr BinaryTable sign_free_loops() {
  return shared_between_signs(
      binary_loops<F, float, double, float16, bfloat16, uint8_t, uint16_t, uint32_t, uint64_t>());
}

template <typename F>
constexpr BinaryTable number_loops() {
  return binary_loops<F, float, double, float16, bfloat16, uint8_t, uint16_t, uint32_t, uint64_t, int8_t, int16_t,
                      int32_t, int64_t>();
}

// As binary_loop<F, float16>, with a piece of a row at a time as floats.
template <typename F>
void half_loop_in_floats(const void* a, const void* b, void* y, const BroadcastTile& tile) {
  constexpr int64_t piece = 512;
  float floats[2][piece];
  const uint16_t* from[2] = {static_cast<const uint16_t*>(a) + tile.first[0],
                             static_cast<const uint16_t*>(b) + tile.first[1]};
  uint16_t* to = static_cast<uint16_t*>(y) + tile.output;
  for (int64_t row = 0; row < tile.rows; ++row, to += tile.columns) {
    for (int64_t begin = 0; begin < tile.columns; begin += piece) {
      BroadcastTile part{1, std::min(piece, tile.columns - begin), 0, {}, {}, {}};
      for (int i = 0; i < 2; ++i) {
        const int64_t stride = part.column_stride[i] = tile.column_stride[i];
        kernels::f16_to_f32(from[i] + row * tile.row_stride[i] + begin * stride, floats[i], stride ? part.columns : 1);
      }
      binary_loop<F, float>(floats[0], floats[1], floats[0], part);
      kernels::f32_to_f16(floats[0], to + begin, part.columns);
    }
  }
}

// As binary_loop<F, float16>, which computes in floats, and with the same results.
template <typename F, kernels::HalfOperation operation>
void half_loop(const void* a, const void* b, void* y, const BroadcastTile& tile) {
  if (!has_half_arithmetic()) return half_loop_in_floats<F>(a, b, y, tile);
  kernels::HalfRows rows{static_cast<const uint16_t*>(a) + tile.first[0],
                         static_cast<const uint16_t*>(b) + tile.first[1],
                         static_cast<uint16_t*>(y) + tile.output,
                         tile.rows,
                         tile.columns,
                         tile.row_stride[0],
                         tile.row_stride[1],
                         tile.column_stride[0],
                         tile.column_stride[1]};
  kernels::f16_arithmetic(operation, rows);
}

template <typename F, kernels::HalfOperation operation>
constexpr BinaryTable with_half_loop(BinaryTable table) {
  table[static_cast<size_t>(ElementType::float16)] = half_loop<F, operation>;
  return table;
}

using kernels::HalfOperation;

void float_pow_loop(const void* a, const void* b, void* y, const BroadcastTile& tile) {
  const float* base = static_cast<const float*>(a) + tile.first[0];
  const float* power = static_cast<const float*>(b) + tile.first[1];
  float* to = static_cast<float*>(y) + tile.output;
  for (int64_t row = 0; row < tile.rows; ++row, to += tile.columns)
    kernels::f32_pow({base + row * tile.row_stride[0], tile.column_stride[0], power + row * tile.row_stride[1],
                      tile.column_stride[1], to, tile.columns});
}

constexpr BinaryTable all_pow_loops() {
  BinaryTable table = binary_loops<Pow, float, double, float16, bfloat16, int32_t, int64_t>();
  table[static_cast<size_t>(ElementType::float32)] = float_pow_loop;
  return table;
}

}  // namespace

constexpr BinaryTable add_loops = with_half_loop<Add, HalfOperation::add>(sign_free_loops<Add>());
constexpr BinaryTable sub_loops = with_half_loop<Sub, HalfOperation::subtract>(sign_free_loops<Sub>());
constexpr BinaryTable mul_loops = with_half_loop<Mul, HalfOperation::multiply>(sign_free_loops<Mul>());
constexpr BinaryTable div_loops = with_half_loop<Div, HalfOperation::divide>(number_loops<Div>());
constexpr BinaryTable floor_mod_loops = number_loops<FloorMod>();
constexpr BinaryTable truncated_mod_loops = number_loops<TruncatedMod>();
constexpr BinaryTable prelu_loops =
    binary_loops<PRelu, float, double, float16, bfloat16, int32_t, int64_t, uint32_t, uint64_t>();
constexpr BinaryTable pow_loops = all_pow_loops();
constexpr BinaryTable square_loops = binary_loops<Square, float, double, float16, bfloat16>();
constexpr BinaryTable square_root_loops = binary_loops<SquareRoot, float, double, float16, bfloat16>();

}  // namespace tenon::ops

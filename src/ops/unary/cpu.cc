#include <algorithm>
#include <cmath>

#include "kernels/chain/chain.h"
#include "kernels/math/math.h"
#include "ops/cpu_support/float_vectors.h"
#include "ops/unary/cpu_loops.h"
#include "provider/cpu_kernels.h"

namespace tenon::ops {
namespace {

using P = Parameters;
using kernels::ChainOperation;

// By the widest vectors that the processor has, which loops here are not compiled for.
void chain_of_one(ChainOperation operation, const float* x, float* y, int64_t n) {
  const kernels::ChainStep step{operation};
  kernels::f32_chain(x, {&step, 1}, y, n);
}

struct Abs {
  template <typename T>
  static T call(T x, const P&) {
    if constexpr (std::is_floating_point_v<T>)
      return std::fabs(x);
    else if constexpr (std::is_unsigned_v<T>)
      return x;
    else {
      // In a type that has the lowest number's too: compilers know that as one instruction.
      __extension__ using Wider = std::conditional_t<sizeof(T) == 8, __int128, int64_t>;
      const Wider wide = x;
      return static_cast<T>(wide < 0 ? -wide : wide);
    }
  }
  static void array(const float* x, float* y, int64_t n, const P&) { chain_of_one(ChainOperation::absolute, x, y, n); }
};
struct Neg {
  template <typename T>
  static T call(T x, const P&) {
    if constexpr (std::is_floating_point_v<T>)
      return -x;
    else
      return static_cast<T>(0 - static_cast<std::make_unsigned_t<T>>(x));
  }
  static void array(const float* x, float* y, int64_t n, const P&) { chain_of_one(ChainOperation::negate, x, y, n); }
};
struct Relu {
  template <typename T>
  static T call(T x, const P&) {
    return x < 0 ? T(0) : x;  // keeps NaN
  }
  static void array(const float* x, float* y, int64_t n, const P&) { chain_of_one(ChainOperation::relu, x, y, n); }
};
// By the bits: what has a sign and is no NaN becomes 0.
void relu_of_halves(const void* from, void* to, int64_t n, const P&) {
  const auto* x = static_cast<const uint16_t*>(from);
  auto* y = static_cast<uint16_t*>(to);
  constexpr uint16_t minus_infinity = 0xfc00;
  TENON_INDEPENDENT_LOOP
  for (int64_t i = 0; i < n; ++i) {
    const bool keeps = static_cast<int16_t>(x[i]) >= 0 || x[i] > minus_infinity;
    y[i] = keeps ? x[i] : uint16_t{0};
  }
}
struct Sign {
  template <typename T>
  static T call(T x, const P&) {
    if constexpr (std::is_floating_point_v<T>) {
      if (x != x) return x;
    }
    return static_cast<T>(static_cast<T>(x > T(0)) - static_cast<T>(x < T(0)));
  }
  static void array(const float* x, float* y, int64_t n, const P&) {
    // What is not 0 becomes at least 1, also the smallest denormal number.
    map_vectors(x, y, n, [one = FloatVector{} + 1.0f](FloatVector v) {
      const FloatVector large = v * 0x1p127f * 0x1p127f;
      return kernels::extreme_of<true, float>(kernels::extreme_of<false, float>(large, one), -one);
    });
  }
};
struct Not {
  static bool call(bool x, const P&) { return !x; }
  // Compilers vectorise bytes, but not bools.
  static void array(const bool* from, bool* to, int64_t n, const P&) {
    const auto* x = reinterpret_cast<const uint8_t*>(from);
    auto* y = reinterpret_cast<uint8_t*>(to);
    TENON_INDEPENDENT_LOOP
    for (int64_t i = 0; i < n; ++i) y[i] = x[i] ^ 1;
  }
};
struct BitwiseNot {
  template <typename T>
  static T call(T x, const P&) {
    return static_cast<T>(~x);
  }
};
struct Sqrt {
  static auto call(auto x, const P&) { return std::sqrt(x); }
};
struct Floor {
  static auto call(auto x, const P&) { return std::floor(x); }
};
struct Ceil {
  static auto call(auto x, const P&) { return std::ceil(x); }
};
// Halves go to the even neighbour.
struct Round {
  static auto call(auto x, const P&) { return std::nearbyint(x); }
};
struct Reciprocal {
  static auto call(auto x, const P&) { return 1 / x; }
  static void array(const float* x, float* y, int64_t n, const P&) { kernels::f32_reciprocal(x, y, n); }
};
struct Softsign {
  static auto call(auto x, const P&) { return x / (1 + std::fabs(x)); }
};
struct HardSwish {
  template <typename T>
  static T call(T x, const P&) {
    T gate = x * T(1.0 / 6) + T(0.5);
    gate = gate < 0 ? T(0) : gate;
    gate = gate > 1 ? T(1) : gate;
    return x * gate;
  }
  static void array(const float* x, float* y, int64_t n, const P&) {
    map_vectors(x, y, n, [](FloatVector v) { return v * unit_clamp(v * (1.0f / 6) + 0.5f); });
  }
};
struct IsNaN {
  static bool call(auto x, const P&) { return x != x; }
};
// a, b: what counts, -infinity and infinity or NaN, which equals nothing.
struct IsInf {
  template <typename T>
  static bool call(T x, const P& p) {
    return (x == static_cast<T>(p.a)) | (x == static_cast<T>(p.b));
  }
};

// Functions of the mathematical kernels, with the standard library's for double.
#define TENON_MATH(Name, array_function, expression)                                                       \
  struct Name {                                                                                            \
    static auto call(auto x, const P&) { return expression; }                                              \
    static void array(const float* x, float* y, int64_t n, const P&) { kernels::array_function(x, y, n); } \
  };
TENON_MATH(Log, f32_log, std::log(x))
TENON_MATH(Tanh, f32_tanh, std::tanh(x))
TENON_MATH(Asin, f32_asin, std::asin(x))
TENON_MATH(Acos, f32_acos, std::acos(x))
TENON_MATH(Atan, f32_atan, std::atan(x))
TENON_MATH(Tan, f32_tan, std::tan(x))
TENON_MATH(Sinh, f32_sinh, std::sinh(x))
TENON_MATH(Cosh, f32_cosh, std::cosh(x))
TENON_MATH(Asinh, f32_asinh, std::asinh(x))
TENON_MATH(Acosh, f32_acosh, std::acosh(x))
TENON_MATH(Atanh, f32_atanh, std::atanh(x))
TENON_MATH(Sigmoid, f32_sigmoid, 1 / (1 + std::exp(-x)))
TENON_MATH(Softplus, f32_softplus, (x > 0 ? x : 0) + std::log1p(std::exp(-std::fabs(x))))
#undef TENON_MATH

// Those that have kernels for doubles too.
#define TENON_MATH_OF_DOUBLES(Name, function)                                                                \
  struct Name {                                                                                              \
    static auto call(auto x, const P&) { return std::function(x); }                                          \
    static void array(const float* x, float* y, int64_t n, const P&) { kernels::f32_##function(x, y, n); }   \
    static void array(const double* x, double* y, int64_t n, const P&) { kernels::f64_##function(x, y, n); } \
  };
TENON_MATH_OF_DOUBLES(Exp, exp)
TENON_MATH_OF_DOUBLES(Sin, sin)
TENON_MATH_OF_DOUBLES(Cos, cos)
#undef TENON_MATH_OF_DOUBLES

// Of integers it is what truncation leaves.
struct Erf {
  template <typename T>
  static T call(T x, const P&) {
    if constexpr (std::is_integral_v<T>)
      return static_cast<T>(std::erf(static_cast<double>(x)));
    else
      return std::erf(x);
  }
  static void array(const float* x, float* y, int64_t n, const P&) { kernels::f32_erf(x, y, n); }
};

struct Mish {
  static auto call(auto x, const P& p) { return x * std::tanh(Softplus::call(x, p)); }
  static void array(const float* x, float* y, int64_t n, const P&) {
    constexpr int64_t block = 512;
    float gate[block];
    for (int64_t begin = 0; begin < n; begin += block) {
      int64_t size = std::min(block, n - begin);
      kernels::f32_softplus(x + begin, gate, size);
      kernels::f32_tanh(gate, gate, size);
      for (int64_t i = 0; i < size; ++i) y[begin + i] = x[begin + i] * gate[i];
    }
  }
};

template <typename F, typename... Ts>
constexpr LoopTable<UnaryLoop> loops = unary_loops<F, Ts...>();

template <typename F, typename... More>
constexpr UnaryFunction cheap(std::string_view name, UnaryLoop halves = nullptr) {
  return {name, &loops<F, float, double, float16, bfloat16, More...>, cheap_grain, halves};
}

template <typename F, typename... More>
constexpr UnaryFunction costly(std::string_view name, UnaryLoop halves = nullptr) {
  return {name, &loops<F, float, double, float16, bfloat16, More...>, costly_grain, halves};
}

constexpr UnaryFunction functions[] = {
    cheap<Abs, int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t>("Abs"),
    cheap<Sign, int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t>("Sign"),
    cheap<Neg, int8_t, int16_t, int32_t, int64_t>("Neg"),
    {"Relu", &loops<Relu, float, double, float16, bfloat16, int8_t, int16_t, int32_t, int64_t>, cheap_grain,
     relu_of_halves},
    cheap<Sqrt>("Sqrt"),
    cheap<Floor>("Floor"),
    cheap<Ceil>("Ceil"),
    cheap<Round>("Round"),
    cheap<Reciprocal>("Reciprocal"),
    cheap<Softsign>("Softsign"),
    cheap<HardSwish>("HardSwish", of_halves<kernels::f16_hard_swish>),
    cheap<IsNaN, float8e4m3fn, float8e4m3fnuz, float8e5m2, float8e5m2fnuz>("IsNaN"),
    {"Not", &loops<Not, bool>, cheap_grain},
    {"BitwiseNot", &loops<BitwiseNot, int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t>,
     cheap_grain},
    costly<Exp>("Exp"),
    costly<Log>("Log"),
    costly<Tanh>("Tanh", of_halves<kernels::f16_tanh>),
    {"Erf",
     &loops<Erf, float, double, float16, bfloat16, int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t,
            uint64_t>,
     costly_grain, of_halves<kernels::f16_erf>},
    costly<Sin>("Sin"),
    costly<Cos>("Cos"),
    costly<Sigmoid>("Sigmoid", of_halves<kernels::f16_sigmoid>),
    costly<Softplus>("Softplus"),
    costly<Mish>("Mish"),
    costly<Tan>("Tan"),
    costly<Asin>("Asin"),
    costly<Acos>("Acos"),
    costly<Atan>("Atan"),
    costly<Sinh>("Sinh"),
    costly<Cosh>("Cosh"),
    costly<Asinh>("Asinh"),
    costly<Acosh>("Acosh"),
    costly<Atanh>("Atanh"),
};

std::unique_ptr<Kernel> make_is_inf(const NodeInfo& info) {
  static constexpr LoopTable<UnaryLoop> table =
      unary_loops<IsInf, float, double, float16, bfloat16, float8e4m3fn, float8e4m3fnuz, float8e5m2, float8e5m2fnuz>();
  constexpr float infinity = std::numeric_limits<float>::infinity(), nothing = std::numeric_limits<float>::quiet_NaN();
  Parameters p{info.node().int_attribute("detect_negative", 1) != 0 ? -infinity : nothing,
               info.node().int_attribute("detect_positive", 1) != 0 ? infinity : nothing};
  return std::make_unique<UnaryKernel>(table, cheap_grain, p);
}

}  // namespace

const UnaryFunction* find_unary_function(std::string_view op) {
  auto found = std::ranges::find(functions, op, &UnaryFunction::name);
  return found == std::end(functions) ? nullptr : found;
}

void cpu_unary(CpuKernels& list) {
  for (const UnaryFunction& function : functions) {
    list.add(function.name, [&](const NodeInfo&) {
      return std::make_unique<UnaryKernel>(*function.loops, function.grain, Parameters{}, function.halves);
    });
  }
  list.add("IsInf", make_is_inf);
}

}  // namespace tenon::ops

#include <algorithm>
#include <cmath>

#include "base/fail.h"
#include "kernels/chain/chain.h"
#include "kernels/math/math.h"
#include "ops/activation/cpu_loops.h"
#include "ops/cpu_support/float_vectors.h"
#include "provider/cpu_kernels.h"

namespace tenon::ops {
namespace {

using P = Parameters;
using kernels::ChainOperation;
using kernels::ChainStep;

struct HardSigmoid {
  template <typename T>
  static T call(T x, const P& p) {
    T y = T(p.a) * x + T(p.b);
    y = y < 0 ? T(0) : y;
    return y > 1 ? T(1) : y;
  }
  static void array(const float* x, float* y, int64_t n, const P& p) {
    const float a = p.a, b = p.b;
    map_vectors(x, y, n, [=](FloatVector v) { return unit_clamp(v * a + b); });
  }
};
struct LeakyRelu {
  template <typename T>
  static T call(T x, const P& p) {
    T scaled = T(p.a) * x;
    return x < 0 ? scaled : x;
  }
  static void array(const float* x, float* y, int64_t n, const P& p) {
    const ChainStep step{ChainOperation::leaky_relu, nullptr, 0, p.a};
    kernels::f32_chain(x, {&step, 1}, y, n);
  }
};
struct ThresholdedRelu {
  template <typename T>
  static T call(T x, const P& p) {
    return x > T(p.a) ? x : T(0);
  }
};
// a: lambd, b: bias.
struct Shrink {
  template <typename T>
  static T call(T x, const P& p) {
    using Wide = std::conditional_t<std::is_same_v<T, float>, float, double>;
    Wide value = static_cast<Wide>(x);
    if (value < -p.a) return static_cast<T>(value + p.b);
    if (value > p.a) return static_cast<T>(value - p.b);
    return T(0);
  }
};

// positive * x above zero, negative * (exp(x * inside) - 1) below.
struct ExponentialUnit {
  float positive, negative, inside;

  template <typename T>
  T one(T x) const {
    return x > 0 ? T(positive) * x : T(negative) * std::expm1(x * T(inside));
  }

  void array(const float* x, float* y, int64_t n) const {
    constexpr int64_t block = 512;
    float below[block];
    const auto [above, factor, scale] = *this;
    for (int64_t begin = 0; begin < n; begin += block, x += block, y += block) {
      const int64_t size = std::min(block, n - begin);
      for (int64_t i = 0; i < size; ++i) below[i] = x[i] * scale;
      kernels::f32_expm1_nonpositive(below, below, size);
      TENON_INDEPENDENT_LOOP
      for (int64_t i = 0; i < size; ++i) {
        const float up = above * x[i], down = factor * below[i];
        y[i] = x[i] > 0 ? up : down;
      }
    }
  }
};

struct Elu {
  static ExponentialUnit unit(const P& p) { return {1, p.a, 1}; }
  static auto call(auto x, const P& p) { return unit(p).one(x); }
  static void array(const float* x, float* y, int64_t n, const P& p) { unit(p).array(x, y, n); }
};
struct Selu {
  static ExponentialUnit unit(const P& p) { return {p.b, p.b * p.a, 1}; }
  static auto call(auto x, const P& p) { return unit(p).one(x); }
  static void array(const float* x, float* y, int64_t n, const P& p) { unit(p).array(x, y, n); }
};
struct Celu {
  static ExponentialUnit unit(const P& p) { return {1, p.a, 1 / p.a}; }
  static auto call(auto x, const P& p) { return unit(p).one(x); }
  static void array(const float* x, float* y, int64_t n, const P& p) { unit(p).array(x, y, n); }
};

struct Gelu {
  static auto call(auto x, const P&) { return x / 2 * std::erfc(-x * decltype(x)(M_SQRT1_2)); }
  static void array(const float* x, float* y, int64_t n, const P&) { kernels::f32_gelu(x, y, n); }
};
struct GeluTanh {
  template <typename T>
  static T call(T x, const P&) {
    return x / 2 * (1 + std::tanh(T(M_2_SQRTPI * M_SQRT1_2) * (x + T(0.044715) * x * x * x)));
  }
  static void array(const float* x, float* y, int64_t n, const P&) { kernels::f32_gelu_tanh(x, y, n); }
};
struct Swish {
  static auto call(auto x, const P& p) { return x / (1 + std::exp(-x * p.a)); }
  static void array(const float* x, float* y, int64_t n, const P& p) {
    if (p.a == 1) return kernels::f32_silu(x, y, n);
    constexpr int64_t block = 512;
    float gate[block];
    for (int64_t begin = 0; begin < n; begin += block) {
      int64_t size = std::min(block, n - begin);
      for (int64_t i = 0; i < size; ++i) gate[i] = x[begin + i] * p.a;
      kernels::f32_sigmoid(gate, gate, size);
      for (int64_t i = 0; i < size; ++i) y[begin + i] = x[begin + i] * gate[i];
    }
  }
};

template <typename F, typename... More>
constexpr LoopTable<UnaryLoop> loops = unary_loops<F, float, double, float16, More...>();

template <typename F>
constexpr UnaryFunction function(std::string_view name, int64_t grain) {
  return {name, &loops<F, bfloat16>, grain};
}

constexpr UnaryFunction functions[] = {
    function<HardSigmoid>("HardSigmoid", cheap_grain),
    function<LeakyRelu>("LeakyRelu", cheap_grain),
    function<ThresholdedRelu>("ThresholdedRelu", cheap_grain),
    function<Elu>("Elu", costly_grain),
    function<Selu>("Selu", costly_grain),
    function<Celu>("Celu", costly_grain),
    function<Swish>("Swish", costly_grain),
    {"Gelu", &loops<Gelu, bfloat16>, costly_grain, of_halves<kernels::f16_gelu>},
    {"TanhGelu", &loops<GeluTanh, bfloat16>, costly_grain, of_halves<kernels::f16_gelu_tanh>},
    {"Shrink", &loops<Shrink, int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t>, cheap_grain},
};

std::unique_ptr<Kernel> make(std::string_view name, Parameters parameters = {}) {
  const UnaryFunction& function = *find_activation(name);
  return std::make_unique<UnaryKernel>(*function.loops, function.grain, parameters, function.halves);
}

// Attributes become the function's parameters a and b.
void add(CpuKernels& list, std::string_view name, std::pair<const char*, float> a,
         std::pair<const char*, float> b = {"", 0}) {
  list.add(name, [=](const NodeInfo& info) {
    return make(name, {info.node().float_attribute(a.first, a.second), info.node().float_attribute(b.first, b.second)});
  });
}

std::unique_ptr<Kernel> make_gelu(const NodeInfo& info) {
  std::string approximate = info.node().string_attribute("approximate", "none");
  if (approximate != "none" && approximate != "tanh") {
    fail(ErrorCode::invalid_attribute, "approximate is '{}', it must be none or tanh", approximate);
  }
  return make(approximate == "tanh" ? "TanhGelu" : "Gelu");
}

std::unique_ptr<Kernel> make_swish(const NodeInfo& info) {
  const Parameters p{info.node().float_attribute("alpha", 1)};
  const UnaryFunction& function = *find_activation("Swish");
  const UnaryLoop halves = p.a == 1 ? of_halves<kernels::f16_silu> : nullptr;
  return std::make_unique<UnaryKernel>(*function.loops, function.grain, p, halves);
}

std::unique_ptr<Kernel> make_celu(const NodeInfo& info) {
  Parameters p{info.node().float_attribute("alpha", 1)};
  if (p.a == 0) fail(ErrorCode::invalid_attribute, "alpha is 0, Celu divides by it");
  return make("Celu", p);
}

}  // namespace

const UnaryFunction* find_activation(std::string_view name) {
  auto found = std::ranges::find(functions, name, &UnaryFunction::name);
  return found == std::end(functions) ? nullptr : found;
}

void cpu_activation(CpuKernels& list) {
  add(list, "HardSigmoid", {"alpha", 0.2f}, {"beta", 0.5f});
  add(list, "LeakyRelu", {"alpha", 0.01f});
  add(list, "ThresholdedRelu", {"alpha", 1.0f});
  add(list, "Elu", {"alpha", 1.0f});
  add(list, "Selu", {"alpha", 1.67326319217681884765625f}, {"gamma", 1.05070102214813232421875f});
  add(list, "Shrink", {"lambd", 0.5f}, {"bias", 0});
  list.add("Gelu", make_gelu);
  list.add("Swish", make_swish);
  list.add("Celu", make_celu);
}

}  // namespace tenon::ops

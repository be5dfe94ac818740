// Runs chains of vectors; neon.cc, avx2.cc, avx512.cc and portable.cc instantiate it.
#pragma once

#include <cstddef>
#include <cstring>
#include <limits>
#include <optional>
#include <type_traits>
#include <utility>

#include "kernels/chain/chain.h"
#include "kernels/scratch.h"
#include "kernels/simd/plain_address.h"
#include "kernels/simd/simd.h"

namespace tenon::kernels {

template <class Arch>
struct ChainArrays {
  using S = Simd<Arch>;
  using F = typename S::F;
  using I = typename S::I;

  static constexpr float infinity = std::numeric_limits<float>::infinity();

  // As many vectors as leave registers for operands.
  static constexpr int most_vectors = Arch::isa == Isa::avx512 || Arch::isa == Isa::neon ? 16 : 8;

  // Where `mask`, whose lanes are 0 or -1, `a`, else `b`. Conditions are taken apart lane by lane.
  static F choose(I mask, F a, F b) { return S::from_bits((S::bits(a) & mask) | (S::bits(b) & ~mask)); }
  static F lesser(F a, F b) { return choose((a < b) | (a != a), a, b); }
  static F greater(F a, F b) { return choose((a > b) | (a != a), a, b); }

  template <ChainOperation Operation>
  static F apply(F a, F b) {
    using O = ChainOperation;
    if constexpr (Operation == O::add) return a + b;
    if constexpr (Operation == O::subtract) return a - b;
    if constexpr (Operation == O::subtract_from) return b - a;
    if constexpr (Operation == O::multiply) return a * b;
    if constexpr (Operation == O::divide) return a / b;
    if constexpr (Operation == O::divide_into) return b / a;
    if constexpr (Operation == O::minimum) return lesser(a, b);
    if constexpr (Operation == O::minimum_of) return lesser(b, a);
    if constexpr (Operation == O::maximum) return greater(a, b);
    if constexpr (Operation == O::maximum_of) return greater(b, a);
  }
  template <ChainOperation Operation>
  static constexpr std::integral_constant<ChainOperation, Operation> of{};

  static F relu(F a) {
    if constexpr (requires { Arch::relu(a); })
      return Arch::relu(a);
    else
      return choose(a <= 0.0f, F{}, a);
  }

  // A step as tiles read it, which finding out anything about it would delay: an operand that is one number fills a
  // vector, and whether it is one is in the code.
  struct Step {
    int code;
    const float* operand;
    float low, high;
  };
  static constexpr int number(ChainOperation operation) { return 2 * static_cast<int>(operation); }
  static constexpr int elements(ChainOperation operation) { return 2 * static_cast<int>(operation) + 1; }

  // Elements [at, at + width * vectors) of the arrays; with `part`, the first `count` of one vector.
  template <bool part, size_t... K>
  [[gnu::always_inline]] static void tile(const float* x, std::span<const Step> steps, float* y, int64_t at,
                                          int64_t count, std::index_sequence<K...>) {
    using O = ChainOperation;
    x = plain_address(x + at), y = plain_address(y + at);
    auto load = [&](const float* from, size_t k) __attribute__((always_inline)) {
      if constexpr (part)
        return S::load_part(from, count);
      else
        return S::load(from + k * S::width);
    };
    if constexpr (!part) {
      // While the steps run, too few loads are under way to read memory at its speed. Into the second cache: so many
      // lines would push others out of the first.
      constexpr int64_t ahead = 8192 / sizeof(float), line = 64 / sizeof(float);
      for (int64_t i = 0; i < static_cast<int64_t>(sizeof...(K)) * S::width; i += line)
        __builtin_prefetch(x + ahead + i, 0, 2);
    }
    F v[] = {load(x, K)...};
    // There is a first step: without, registers would be copied around the loop.
    const Step *next = steps.data(), *end = next + steps.size();
    do {
      const Step& step = *next;
      auto each = [&](auto function) __attribute__((always_inline)) { ((v[K] = function(v[K])), ...); };
      auto with_number = [&](auto operation) __attribute__((always_inline)) {
        const F operand = S::load(step.operand);
        ((v[K] = apply<operation>(v[K], operand)), ...);
      };
      auto with_elements = [&](auto operation) __attribute__((always_inline)) {
        const float* operands = plain_address(step.operand + at);
        ((v[K] = apply<operation>(v[K], load(operands, K))), ...);
      };
      switch (step.code) {
        case number(O::add):
          with_number(of<O::add>);
          break;
        case elements(O::add):
          with_elements(of<O::add>);
          break;
        case number(O::subtract):
          with_number(of<O::subtract>);
          break;
        case elements(O::subtract):
          with_elements(of<O::subtract>);
          break;
        case number(O::subtract_from):
          with_number(of<O::subtract_from>);
          break;
        case elements(O::subtract_from):
          with_elements(of<O::subtract_from>);
          break;
        case number(O::multiply):
          with_number(of<O::multiply>);
          break;
        case elements(O::multiply):
          with_elements(of<O::multiply>);
          break;
        case number(O::divide):
          with_number(of<O::divide>);
          break;
        case elements(O::divide):
          with_elements(of<O::divide>);
          break;
        case number(O::divide_into):
          with_number(of<O::divide_into>);
          break;
        case elements(O::divide_into):
          with_elements(of<O::divide_into>);
          break;
        case number(O::minimum):
          with_number(of<O::minimum>);
          break;
        case elements(O::minimum):
          with_elements(of<O::minimum>);
          break;
        case number(O::minimum_of):
          with_number(of<O::minimum_of>);
          break;
        case elements(O::minimum_of):
          with_elements(of<O::minimum_of>);
          break;
        case number(O::maximum):
          with_number(of<O::maximum>);
          break;
        case elements(O::maximum):
          with_elements(of<O::maximum>);
          break;
        case number(O::maximum_of):
          with_number(of<O::maximum_of>);
          break;
        case elements(O::maximum_of):
          with_elements(of<O::maximum_of>);
          break;
        case number(O::negate):
          each([](F a) { return -a; });
          break;
        case number(O::absolute):
          each([](F a) { return S::abs(a); });
          break;
        case number(O::relu):
          each([](F a) { return relu(a); });
          break;
        case number(O::leaky_relu):
          each([low = step.low](F a) { return choose(a < 0.0f, a * low, a); });
          break;
        case number(O::clip):
          // Bounds that are NaN are none.
          each([low = S::set(step.low == step.low ? step.low : -infinity),
                high = S::set(step.high == step.high ? step.high : infinity)](F a) { return S::clamp(a, low, high); });
          break;
        case number(O::square):
          each([](F a) { return a * a; });
          break;
        case number(O::square_root):
          each([](F a) { return S::sqrt(a); });
          break;
        case number(O::reciprocal):
          each([](F a) { return 1.0f / a; });
          break;
        default:
          __builtin_unreachable();
      }
    } while (++next != end);
    if constexpr (part)
      S::store_part(y, v[0], count);
    else
      (S::store(y + K * S::width, v[K]), ...);
  }

  // As many tiles of this many vectors as there are from element i on.
  template <int vectors>
  static void tiles(const float* x, std::span<const Step> steps, float* y, int64_t& i, int64_t n) {
    constexpr int64_t size = vectors * S::width;
    for (; i + size <= n; i += size) tile<false>(x, steps, y, i, size, std::make_index_sequence<vectors>());
  }

  static void run(const float* x, std::span<const ChainStep> steps, float* y, int64_t n) {
    if (steps.empty()) {
      if (x != y) std::memcpy(y, x, static_cast<size_t>(n) * sizeof(float));
      return;
    }
    constexpr size_t bytes = sizeof(F) + sizeof(Step), few = 8;
    alignas(F) std::byte of_few[few * bytes];
    std::optional<Scratch> of_many;
    if (steps.size() > few) of_many.emplace(steps.size() * bytes);
    auto* numbers = of_many ? of_many->as<float>() : reinterpret_cast<float*>(of_few);
    auto* first = reinterpret_cast<Step*>(numbers + steps.size() * S::width);
    for (size_t i = 0; i < steps.size(); ++i, numbers += S::width) {
      const ChainStep& step = steps[i];
      const bool has_operand = step.operation <= ChainOperation::maximum_of;
      const bool is_number = has_operand && step.stride == 0;
      if (is_number) S::store(numbers, S::set(*step.operand));
      const int code = has_operand && !is_number ? elements(step.operation) : number(step.operation);
      first[i] = {code, is_number ? numbers : step.operand, step.low, step.high};
    }
    run(x, std::span<const Step>(first, steps.size()), y, n);
  }

  static void run(const float* x, std::span<const Step> steps, float* y, int64_t n) {
    int64_t i = 0;
    tiles<most_vectors>(x, steps, y, i, n);
    tiles<4>(x, steps, y, i, n);
    tiles<1>(x, steps, y, i, n);
    if (i < n) tile<true>(x, steps, y, i, n - i, std::index_sequence<0>());
  }

  static constexpr ChainKernels table() { return {Arch::isa, run}; }
};

}  // namespace tenon::kernels

// Runs chains of vectors; neon.cc, avx2.cc, avx512.cc and portable.cc instantiate it.
#pragma once

#include <cstring>
#include <limits>
#include <utility>

#include "kernels/chain/chain.h"
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

  // Elements [at, at + width * vectors) of the arrays; with `part`, the first `count` of one vector.
  template <bool part, size_t... K>
  [[gnu::always_inline]] static void tile(const float* x, std::span<const ChainStep> steps, float* y, int64_t at,
                                          int64_t count, std::index_sequence<K...>) {
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
    const ChainStep *next = steps.data(), *end = next + steps.size();
    do {
      const ChainStep& step = *next;
      auto each = [&](auto function) __attribute__((always_inline)) { ((v[K] = function(v[K])), ...); };
      auto with_operand = [&](auto function) __attribute__((always_inline)) {
        if (step.stride) {
          const float* operands = plain_address(step.operand + at);
          ((v[K] = function(v[K], load(operands, K))), ...);
        } else {
          const F operand = S::set(*step.operand);
          ((v[K] = function(v[K], operand)), ...);
        }
      };
      switch (step.operation) {
        case ChainOperation::add:
          with_operand([](F a, F b) { return a + b; });
          break;
        case ChainOperation::subtract:
          with_operand([](F a, F b) { return a - b; });
          break;
        case ChainOperation::subtract_from:
          with_operand([](F a, F b) { return b - a; });
          break;
        case ChainOperation::multiply:
          with_operand([](F a, F b) { return a * b; });
          break;
        case ChainOperation::divide:
          with_operand([](F a, F b) { return a / b; });
          break;
        case ChainOperation::divide_into:
          with_operand([](F a, F b) { return b / a; });
          break;
        case ChainOperation::minimum:
          with_operand([](F a, F b) { return lesser(a, b); });
          break;
        case ChainOperation::minimum_of:
          with_operand([](F a, F b) { return lesser(b, a); });
          break;
        case ChainOperation::maximum:
          with_operand([](F a, F b) { return greater(a, b); });
          break;
        case ChainOperation::maximum_of:
          with_operand([](F a, F b) { return greater(b, a); });
          break;
        case ChainOperation::negate:
          each([](F a) { return -a; });
          break;
        case ChainOperation::absolute:
          each([](F a) { return S::abs(a); });
          break;
        case ChainOperation::relu:
          each([](F a) { return choose(a < 0.0f, F{}, a); });
          break;
        case ChainOperation::leaky_relu:
          each([low = step.low](F a) { return choose(a < 0.0f, a * low, a); });
          break;
        case ChainOperation::clip:
          // Bounds that are NaN are none.
          each([low = S::set(step.low == step.low ? step.low : -infinity),
                high = S::set(step.high == step.high ? step.high : infinity)](F a) { return S::clamp(a, low, high); });
          break;
        case ChainOperation::square:
          each([](F a) { return a * a; });
          break;
        case ChainOperation::square_root:
          each([](F a) { return S::sqrt(a); });
          break;
        case ChainOperation::reciprocal:
          each([](F a) { return 1.0f / a; });
          break;
      }
    } while (++next != end);
    if constexpr (part)
      S::store_part(y, v[0], count);
    else
      (S::store(y + K * S::width, v[K]), ...);
  }

  // As many tiles of this many vectors as there are from element i on.
  template <int vectors>
  static void tiles(const float* x, std::span<const ChainStep> steps, float* y, int64_t& i, int64_t n) {
    constexpr int64_t size = vectors * S::width;
    for (; i + size <= n; i += size) tile<false>(x, steps, y, i, size, std::make_index_sequence<vectors>());
  }

  static void run(const float* x, std::span<const ChainStep> steps, float* y, int64_t n) {
    if (steps.empty()) {
      if (x != y) std::memcpy(y, x, static_cast<size_t>(n) * sizeof(float));
      return;
    }
    int64_t i = 0;
    tiles<most_vectors>(x, steps, y, i, n);
    tiles<4>(x, steps, y, i, n);
    tiles<1>(x, steps, y, i, n);
    if (i < n) tile<true>(x, steps, y, i, n - i, std::index_sequence<0>());
  }

  static constexpr ChainKernels table() { return {Arch::isa, run}; }
};

}  // namespace tenon::kernels

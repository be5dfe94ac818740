// Runs chains of vectors; a file per instruction set instantiates it.
#pragma once

#include <array>
#include <cstddef>
#include <cstring>
#include <limits>
#include <optional>
#include <utility>

#include "base/cpu_features.h"
#include "kernels/chain/chain.h"
#include "kernels/scratch.h"
#include "kernels/simd/simd.h"

namespace tenon::kernels {

template <class Arch>
struct ChainArrays {
  using S = Simd<Arch>;
  using F = typename S::F;
  using I = typename S::I;
  using O = ChainOperation;

  static F lesser(F a, F b) { return S::choose((a < b) | (a != a), a, b); }
  static F greater(F a, F b) { return S::choose((a > b) | (a != a), a, b); }
  static F relu(F a) {
    if constexpr (requires { Arch::relu(a); })
      return Arch::relu(a);
    else
      return S::choose(a <= 0.0f, F{}, a);
  }

  // b is the operand, or the lower bound.
  template <O operation>
  static F apply(F a, F b, F high) {
    if constexpr (operation == O::add) return a + b;
    if constexpr (operation == O::subtract) return a - b;
    if constexpr (operation == O::subtract_from) return b - a;
    if constexpr (operation == O::multiply) return a * b;
    if constexpr (operation == O::divide) return a / b;
    if constexpr (operation == O::divide_into) return b / a;
    if constexpr (operation == O::minimum) return lesser(a, b);
    if constexpr (operation == O::minimum_of) return lesser(b, a);
    if constexpr (operation == O::maximum) return greater(a, b);
    if constexpr (operation == O::maximum_of) return greater(b, a);
    if constexpr (operation == O::negate) return -a;
    if constexpr (operation == O::absolute) return S::abs(a);
    if constexpr (operation == O::relu) return relu(a);
    if constexpr (operation == O::leaky_relu) return S::choose(a < 0.0f, a * b, a);
    if constexpr (operation == O::clip) return S::clamp(a, b, high);
    if constexpr (operation == O::square) return a * a;
    if constexpr (operation == O::square_root) return S::sqrt(a);
    if constexpr (operation == O::reciprocal) return 1.0f / a;
  }
  static constexpr size_t operations = static_cast<size_t>(O::reciprocal) + 1;
  static constexpr size_t with_operands = static_cast<size_t>(O::maximum_of) + 1;

  // Some elements of the arrays.
  struct Place {
    int64_t at, count;
  };
  template <size_t>
  using Vector = F;

  // Tiles of as many vectors as there are K; with `part`, of the first elements of one.
  template <bool part, size_t... K>
  struct Tiles {
    static constexpr int64_t size = sizeof...(K) * S::width;

    // Each step ends with a call of the next one, which compilers make a jump: the vectors stay in registers, and
    // nothing has to be found out in between.
    struct Step;
    using Function = void (*)(const Step*, Place, Vector<K>...);
    struct Step {
      Function function;
      const float* operand;
      float* y;  // of the last step
      F low, high;
    };

    static F load(const float* from, Place place) {
      if constexpr (part)
        return S::load_part(from, place.count);
      else
        return S::load(from);
    }
    template <O operation>
    static void with_number(const Step* step, Place place, Vector<K>... v) {
      return step[1].function(step + 1, place, apply<operation>(v, step->low, step->high)...);
    }
    template <O operation>
    static void with_elements(const Step* step, Place place, Vector<K>... v) {
      const float* operands = step->operand + place.at;
      return step[1].function(step + 1, place, apply<operation>(v, load(operands + K * S::width, place), F{})...);
    }
    static void store(const Step* step, Place place, Vector<K>... v) {
      float* y = step->y + place.at;
      if constexpr (part)
        (S::store_part(y, v, place.count), ...);
      else
        (S::store(y + K * S::width, v), ...);
    }

    template <size_t... Operation>
    static constexpr auto all_with_number(std::index_sequence<Operation...>) {
      return std::array{&with_number<static_cast<O>(Operation)>...};
    }
    template <size_t... Operation>
    static constexpr auto all_with_elements(std::index_sequence<Operation...>) {
      return std::array{&with_elements<static_cast<O>(Operation)>...};
    }

    static Step prepared(const ChainStep& step) {
      static constexpr auto of_number = all_with_number(std::make_index_sequence<operations>());
      static constexpr auto of_elements = all_with_elements(std::make_index_sequence<with_operands>());
      const auto operation = static_cast<size_t>(step.operation);
      const bool has_operand = operation < with_operands;
      if (has_operand && step.stride != 0) return {of_elements[operation], step.operand, nullptr, F{}, F{}};
      float low = has_operand ? *step.operand : step.low, high = step.high;
      if (step.operation == O::clip) {
        // Bounds that are NaN are none.
        constexpr float infinity = std::numeric_limits<float>::infinity();
        if (low != low) low = -infinity;
        if (high != high) high = infinity;
      }
      return {of_number[operation], nullptr, nullptr, S::set(low), S::set(high)};
    }

    // One step by itself is a loop without calls.
    template <O operation>
    static void alone(const Step& step, const float* x, float* y, int64_t count) {
      const F low = step.low, high = step.high;
      const auto put = [](float* to, Vector<K>... v) { (S::store(to + K * S::width, v), ...); };
      for (int64_t i = 0; i < count; i += size)
        put(y + i, apply<operation>(S::load(x + i + K * S::width), low, high)...);
    }
    template <size_t... Operation>
    static constexpr auto all_alone(std::index_sequence<Operation...>) {
      return std::array{&alone<static_cast<O>(Operation)>...};
    }

    // While the steps run, too few loads are under way to read memory at its speed. Into the second cache: so many
    // lines would push others out of the first.
    [[gnu::always_inline]] static void fetch(const float* x) {
      constexpr int64_t ahead = 8192 / sizeof(float), line = 64 / sizeof(float);
      for (int64_t i = 0; i < size; i += line) __builtin_prefetch(x + ahead + i, 0, 2);
    }

    // As many tiles as there are from element i on.
    static void run(const float* x, std::span<const ChainStep> steps, float* y, int64_t& i, int64_t n,
                    std::byte* memory) {
      if (!part && i + size > n) return;
      auto* first = reinterpret_cast<Step*>(memory);
      for (size_t k = 0; k < steps.size(); ++k) first[k] = prepared(steps[k]);
      first[steps.size()] = {store, nullptr, y, F{}, F{}};
      // What the second cache holds is near enough; and cores of x86_64 foresee by themselves what one step reads.
      constexpr bool one_is_foreseen = Arch::isa == Isa::avx2 || Arch::isa == Isa::avx512;
      const bool fetches = !part && n * int64_t{sizeof(float)} > cpu_features().l2_bytes;
      if constexpr (!part) {
        static constexpr auto loops = all_alone(std::make_index_sequence<operations>());
        if (steps.size() == 1 && !first->operand && (one_is_foreseen || !fetches)) {
          const int64_t count = (n - i) / size * size;
          loops[static_cast<size_t>(steps[0].operation)](*first, x + i, y + i, count);
          i += count;
          return;
        }
      }
      do {
        const Place place{i, n - i};
        if (fetches) fetch(x + i);
        first->function(first, place, load(x + i + K * S::width, place)...);
        i += size;
      } while (i + size <= n);
    }
  };

  using Vectors = Tiles<false, 0, 1, 2, 3, 4, 5, 6, 7>;  // as many as calls pass in registers
  using FourVectors = Tiles<false, 0, 1, 2, 3>;
  using OneVector = Tiles<false, 0>;
  using Part = Tiles<true, 0>;

  static void run(const float* x, std::span<const ChainStep> steps, float* y, int64_t n) {
    if (steps.empty()) {
      if (x != y) std::memcpy(y, x, static_cast<size_t>(n) * sizeof(float));
      return;
    }
    constexpr size_t few = 8, step_bytes = sizeof(typename Vectors::Step);
    alignas(F) std::byte of_few[(few + 1) * step_bytes];
    std::optional<Scratch> of_many;
    if (steps.size() > few) of_many.emplace((steps.size() + 1) * step_bytes);
    std::byte* memory = of_many ? of_many->as<std::byte>() : of_few;
    int64_t i = 0;
    Vectors::run(x, steps, y, i, n, memory);
    FourVectors::run(x, steps, y, i, n, memory);
    OneVector::run(x, steps, y, i, n, memory);
    if (i < n) Part::run(x, steps, y, i, n, memory);
  }

  static constexpr ChainKernels table() { return {Arch::isa, run}; }
};

}  // namespace tenon::kernels

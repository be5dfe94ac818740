// Loops and inference rules that elementwise operators share.
#pragma once

#include <array>
#include <type_traits>

#include "base/independent_loop.h"
#include "ops/broadcast.h"
#include "ops/inference.h"
#include "tenon/scalar.h"

namespace tenon::ops {

// How many elements make a part of a loop worth a thread of its own.
inline constexpr int64_t cheap_grain = 16384;
inline constexpr int64_t costly_grain = 2048;

// The type that arithmetic on T is done in.
template <typename T>
struct ComputeOf {
  using type = T;
};
template <>
struct ComputeOf<float16> {
  using type = float;
};
template <>
struct ComputeOf<bfloat16> {
  using type = float;
};
template <ElementType type_>
struct ComputeOf<SmallFloat<type_>> {
  using type = float;
};
template <typename T>
using Compute = typename ComputeOf<T>::type;

// Attributes of an operator that its scalar function takes.
struct Parameters {
  float a = 0, b = 0;
};

// One loop per element type of an operator's input; null where it has none.
template <typename Loop>
using LoopTable = std::array<Loop, element_type_count>;

using UnaryLoop = void (*)(const void* x, void* y, int64_t n, const Parameters&);
using BinaryLoop = void (*)(const void* a, const void* b, void* y, const BroadcastTile&);

// y[i] = F::call(x[i], parameters). F may have, for floats, array(x, y, n, parameters) that does the same faster.
template <typename F, typename T>
void unary_loop(const void* from, void* to, int64_t n, const Parameters& parameters) {
  using C = Compute<T>;
  using Result = decltype(F::call(C(), parameters));
  using Out = std::conditional_t<std::is_same_v<Result, C>, T, Result>;
  const T* x = static_cast<const T*>(from);
  Out* y = static_cast<Out*>(to);
  if constexpr (requires(C * p) { F::array(p, p, n, parameters); }) {
    if constexpr (std::is_same_v<T, C>) {
      F::array(x, y, n, parameters);
    } else {
      constexpr int64_t block = 512;
      C buffer[block];
      for (int64_t begin = 0; begin < n; begin += block) {
        int64_t size = std::min(block, n - begin);
        for (int64_t i = 0; i < size; ++i) buffer[i] = static_cast<C>(x[begin + i]);
        F::array(buffer, buffer, size, parameters);
        for (int64_t i = 0; i < size; ++i) y[begin + i] = static_cast<Out>(buffer[i]);
      }
    }
  } else {
    const Parameters copy = parameters;  // which y cannot be part of
    TENON_INDEPENDENT_LOOP
#pragma GCC unroll 4
    for (int64_t i = 0; i < n; ++i) y[i] = static_cast<Out>(F::call(static_cast<C>(x[i]), copy));
  }
}

// y[i] = F::call(a[i], b[i]) over a tile; y may be a.
template <typename F, typename T>
void binary_loop(const void* from_a, const void* from_b, void* to, const BroadcastTile& tile) {
  using C = Compute<T>;
  using Result = decltype(F::call(C(), C()));
  using Out = std::conditional_t<std::is_same_v<Result, C>, T, Result>;
  auto call = [](const T& p, const T& q) {
    if constexpr (std::is_same_v<T, C>) {
      return F::call(p, q);
    } else {
      return static_cast<Out>(F::call(static_cast<C>(p), static_cast<C>(q)));
    }
  };
  const T* a = static_cast<const T*>(from_a) + tile.first[0];
  const T* b = static_cast<const T*>(from_b) + tile.first[1];
  Out* y = static_cast<Out*>(to) + tile.output;
  int64_t n = tile.columns;
  for (int64_t row = 0; row < tile.rows; ++row, a += tile.row_stride[0], b += tile.row_stride[1], y += n) {
    if (tile.column_stride[0] && tile.column_stride[1]) {
      TENON_INDEPENDENT_LOOP
      for (int64_t i = 0; i < n; ++i) y[i] = call(a[i], b[i]);
    } else if (tile.column_stride[0]) {
      const T other = *b;
      TENON_INDEPENDENT_LOOP
      for (int64_t i = 0; i < n; ++i) y[i] = call(a[i], other);
    } else if (tile.column_stride[1]) {
      const T other = *a;
      TENON_INDEPENDENT_LOOP
      for (int64_t i = 0; i < n; ++i) y[i] = call(other, b[i]);
    } else {
      std::fill_n(y, n, call(*a, *b));
    }
  }
}

template <typename F, typename... Ts>
constexpr LoopTable<UnaryLoop> unary_loops() {
  LoopTable<UnaryLoop> table{};
  ((table[static_cast<size_t>(element_type_of<Ts>)] = unary_loop<F, Ts>), ...);
  return table;
}

template <typename F, typename... Ts>
constexpr LoopTable<BinaryLoop> binary_loops() {
  LoopTable<BinaryLoop> table{};
  ((table[static_cast<size_t>(element_type_of<Ts>)] = binary_loop<F, Ts>), ...);
  return table;
}

[[noreturn]] void fail_no_loop(ElementType type);
// The loop for an element type; throws when there is none.
template <typename Loop>
Loop loop_for(const LoopTable<Loop>& table, ElementType type) {
  Loop loop = table[static_cast<size_t>(type)];
  if (!loop) fail_no_loop(type);
  return loop;
}

// Output 0 of the given type, in the shape all inputs from `first` on are broadcast to.
void infer_broadcast(Inference& i, ElementType element, size_t first = 0);

// If the inputs are small integer tensors of known content: the content of output 0, function(one element of each).
using ValueFunction = Dim (*)(std::span<const Dim>);
void infer_values(Inference& i, ValueFunction function);

}  // namespace tenon::ops

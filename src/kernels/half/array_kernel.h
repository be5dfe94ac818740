// Whole vectors through the instruction set's conversion, the rest through a padded one.
#pragma once

#include <cstring>

#include "kernels/half/half.h"

namespace tenon::kernels {

// Arch has internal linkage: isa, width, to_half(const float*, uint16_t*) and to_float(const uint16_t*, float*) of
// `width` elements.
template <class Arch>
struct HalfArrays {
  template <class From, class To, void (*Convert)(const From*, To*)>
  static void apply(const From* x, To* y, int64_t n) {
    int64_t i = 0;
    constexpr int64_t at_once = 4 * Arch::width;
    for (; i + at_once <= n; i += at_once) {
      for (size_t ahead = 2048; ahead < 2048 + at_once * sizeof(From); ahead += 64)
        __builtin_prefetch(reinterpret_cast<const char*>(x + i) + ahead);
#pragma GCC unroll 4
      for (int64_t k = 0; k < at_once; k += Arch::width) Convert(x + i + k, y + i + k);
    }
    for (; i + Arch::width <= n; i += Arch::width) Convert(x + i, y + i);
    if (i == n) return;
    // Aligned for the widest vectors: GCC clears the array with those, also where a sanitizer has moved it.
    alignas(64) From from[Arch::width] = {};
    alignas(64) To to[Arch::width];
    std::memcpy(from, x + i, static_cast<size_t>(n - i) * sizeof(From));
    Convert(from, to);
    std::memcpy(y + i, to, static_cast<size_t>(n - i) * sizeof(To));
  }

  static constexpr HalfKernels table() {
    return {Arch::isa, apply<float, uint16_t, Arch::to_half>, apply<uint16_t, float, Arch::to_float>};
  }
};

}  // namespace tenon::kernels

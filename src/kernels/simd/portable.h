// Four lanes with whatever the compiler's baseline offers.
#pragma once

#include <cmath>

#include "base/cpu_features.h"
#include "kernels/simd/simd.h"
#include "tenon/scalar.h"

namespace tenon::kernels {
namespace {

struct Portable {
  static constexpr Isa isa = Isa::portable;
  static constexpr int width = 4;
  static constexpr VectorsAtOnce at_once{};
  using F [[gnu::vector_size(16)]] = float;
  using I [[gnu::vector_size(16)]] = int32_t;
  static F fma(F a, F b, F c) { return a * b + c; }
  static F sqrt(F x) { return F{std::sqrt(x[0]), std::sqrt(x[1]), std::sqrt(x[2]), std::sqrt(x[3])}; }
  static F load_halves(const uint16_t* p) {
    F v;
    for (int i = 0; i < width; ++i) v[i] = static_cast<float>(float16::from_bits(p[i]));
    return v;
  }
  static void store_halves(uint16_t* p, F v) {
    for (int i = 0; i < width; ++i) p[i] = float16(v[i]).bits;
  }
};

}  // namespace
}  // namespace tenon::kernels

// Four lanes with whatever the compiler's baseline offers.
#pragma once

#include <cmath>

#include "base/cpu_features.h"
#include "kernels/simd/simd.h"

namespace tenon::kernels {
namespace {

struct Portable {
  static constexpr Isa isa = Isa::portable;
  static constexpr int width = 4;
  using F [[gnu::vector_size(16)]] = float;
  using I [[gnu::vector_size(16)]] = int32_t;
  static F fma(F a, F b, F c) { return a * b + c; }
  static F sqrt(F x) { return F{std::sqrt(x[0]), std::sqrt(x[1]), std::sqrt(x[2]), std::sqrt(x[3])}; }
};

}  // namespace
}  // namespace tenon::kernels

// Four lanes with whatever the compiler's baseline offers.
#pragma once

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
};

}  // namespace
}  // namespace tenon::kernels

// Four lanes with whatever the compiler's baseline offers.
#pragma once

#include "base/cpu_features.h"
#include "kernels/simd/simd.h"

namespace tenon::kernels {
namespace {

struct Portable {
  static constexpr Isa isa = Isa::portable;
  static constexpr int width = 4;
  typedef float F __attribute__((vector_size(16)));
  typedef int32_t I __attribute__((vector_size(16)));
  static F fma(F a, F b, F c) { return a * b + c; }
};

}  // namespace
}  // namespace tenon::kernels

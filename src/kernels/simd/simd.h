// Vectors of float for kernels that are written once and compiled per instruction set.
#pragma once

#include <cstdint>
#include <cstring>

namespace tenon::kernels {

// How many vectors loops work on at once, so that operations which wait for each other overlap, where there are
// registers for them.
struct VectorsAtOnce {
  int of_functions = 2;       // elementary functions of arrays
  int of_exponentials = 2;    // an even number
  int of_columns = 4;         // that are the columns of whole GEMM tiles
  int of_normalizations = 4;  // a multiple of 4
};

// `Arch` is one of the structs in neon.h, sve256.h, avx2.h, avx512.h and portable.h beside this file. They have
// internal linkage, so every instantiation belongs to the file of its instruction set alone.
// F and I are compiler vectors: + - * / < ? : & | << and indexing work on them lane by lane.
template <class Arch>
struct Simd {
  static constexpr int width = Arch::width;
  using F = typename Arch::F;
  using I = typename Arch::I;

  static F load(const float* p) {
    F v;
    std::memcpy(&v, p, sizeof v);
    return v;
  }
  static void store(float* p, F v) { std::memcpy(p, &v, sizeof v); }
  // The first `count` lanes; the others read as zero.
  static F load_part(const float* p, int64_t count) {
    if constexpr (requires { Arch::load_part(p, count); }) return Arch::load_part(p, count);
    F v = {};
    std::memcpy(&v, p, static_cast<size_t>(count) * sizeof(float));
    return v;
  }
  static void store_part(float* p, F v, int64_t count) {
    if constexpr (requires { Arch::store_part(p, v, count); }) return Arch::store_part(p, v, count);
    std::memcpy(p, &v, static_cast<size_t>(count) * sizeof(float));
  }

  // Subtracting zero changes no number, so that the compiler leaves it out; adding it would change -0.
  static F set(float x) { return x - F{}; }
  static I set_int(int32_t x) { return I{} + x; }
  static F from_bits(I v) { return (F)v; }
  static I bits(F v) { return (I)v; }
  static F to_float(I v) { return __builtin_convertvector(v, F); }
  static I truncate(F v) { return __builtin_convertvector(v, I); }
  // a * b + c, rounded once where the instruction set can.
  static F fma(F a, F b, F c) { return Arch::fma(a, b, c); }
  // A constant that fma adds. Where fma overwrites it, it is loaded for every fma: a copy of a register would take one
  // of the units that compute. Operations are then computed in the order in which they are written.
  static F addend(const float* lanes) {
    if constexpr (requires { Arch::load_anew(lanes); })
      return Arch::load_anew(lanes);
    else
      return load(lanes);
  }
  static F sqrt(F v) { return Arch::sqrt(v); }
  static F abs(F v) {
    if constexpr (requires { Arch::abs(v); })
      return Arch::abs(v);
    else
      return from_bits(bits(v) & 0x7fffffff);
  }
  // Both return the second operand where either is NaN.
  static F max(F bound, F v) { return bound > v ? bound : v; }
  static F min(F bound, F v) { return bound < v ? bound : v; }
  // For bounds that are not NaN; NaN stays NaN. One instruction where there is one; of two zeros, either may be
  // returned.
  static F at_least(F bound, F v) {
    if constexpr (requires { Arch::max(bound, v); })
      return Arch::max(bound, v);
    else
      return max(bound, v);
  }
  static F at_most(F bound, F v) {
    if constexpr (requires { Arch::min(bound, v); })
      return Arch::min(bound, v);
    else
      return min(bound, v);
  }
  static F clamp(F v, F lo, F hi) { return at_most(hi, at_least(lo, v)); }

  // Where `mask`, whose lanes are 0 or -1, `a`, else `b`. Conditions would be taken apart lane by lane when nested.
  static F choose(I mask, F a, F b) {
    if constexpr (requires { Arch::choose(mask, a, b); })
      return Arch::choose(mask, a, b);
    else
      return from_bits((bits(a) & mask) | (bits(b) & ~mask));
  }

  // Whether a lane is not 0.
  static bool any(I v) {
    if constexpr (requires { Arch::any(v); }) return Arch::any(v);
    int64_t parts[sizeof(I) / sizeof(int64_t)], all = 0;
    std::memcpy(parts, &v, sizeof v);
    for (int64_t part : parts) all |= part;
    return all != 0;
  }

  static float sum(F v) {
    if constexpr (requires { Arch::sum(v); }) return Arch::sum(v);
    float lanes[width];
    std::memcpy(lanes, &v, sizeof v);
    for (int half = width / 2; half > 0; half /= 2)
      for (int i = 0; i < half; ++i) lanes[i] += lanes[i + half];
    return lanes[0];
  }
  // NaN in, NaN out.
  static float highest(F v) {
    if constexpr (requires { Arch::highest(v); }) return Arch::highest(v);
    float result = v[0];
    for (int i = 1; i < width; ++i) result = (v[i] > result || v[i] != v[i]) ? v[i] : result;
    return result;
  }
};

}  // namespace tenon::kernels

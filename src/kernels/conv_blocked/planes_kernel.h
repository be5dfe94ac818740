// Blocks of channels become planes, written once; the files of instruction sets instantiate it.
#pragma once

#include <algorithm>
#include <utility>

#include "kernels/conv_blocked/tile.h"
#include "kernels/simd/simd.h"

namespace tenon::kernels {

// Tile is a struct of internal linkage: S and vectors (of a block).
template <class Tile>
struct BlocksToPlanesKernel {
  using S = typename Tile::S;
  using F = typename S::F;
  static constexpr int width = S::width;
  static constexpr int block = Tile::vectors * width;

  // Few channels at a time: each is in pages of its own.
  static void run(const BlocksToPlanes& b) {
    const auto run = b.residual     ? &run_pixels<true, false>
                     : b.phases > 1 ? &run_pixels<false, false>
                                    : &run_pixels<false, true>;
    for (int64_t c = 0; c < b.channels; c += width) run(b, c);
  }

 private:
  template <bool Residual, bool OnePhase>
  static void run_pixels(BlocksToPlanes b, int64_t channel) {
    if constexpr (OnePhase) b.phases = 1;
    const float* sums = b.sums + channel / block * b.block_step + channel % block;
    const int64_t count = std::min<int64_t>(width, b.pixels);
    int64_t offsets[width];  // of a tile's pixels, if its first one has this phase
    int64_t first_phase = -1;
    for (int64_t first = 0; first < b.pixels; first += width) {
      const int64_t pixel = std::min(first, b.pixels - count);  // the last ones may be stored twice
      if (!OnePhase && pixel % b.phases != first_phase) {
        first_phase = pixel % b.phases;
        int64_t phase = first_phase, at = 0;
        for (int64_t i = 0; i < width; ++i) {
          offsets[i] = phase * b.phase_step + at;
          if (++phase == b.phases) phase = 0, at += block;
        }
      }
      const float* from = sums + pixel / b.phases * block;
      const float* pixels[width];
#pragma GCC unroll 16
      for (int i = 0; i < width; ++i) pixels[i] = from + (OnePhase ? i * block : offsets[i]);
      run_tile<Residual>(b, pixels, pixel, count, channel);
    }
  }

  template <bool Residual>
  [[gnu::always_inline]] static void run_tile(const BlocksToPlanes& b, const float* const (&pixels)[width],
                                              int64_t pixel, int64_t count, int64_t channel) {
    F v[width];
#pragma GCC unroll 16
    for (int i = 0; i < width; ++i) v[i] = S::load(pixels[i]);
    transpose<1>(v);
    const int64_t at = channel * b.y_step + pixel, channels = std::min<int64_t>(width, b.channels - channel);
    if (count < width || channels < width) {
      F copy[width];
#pragma GCC unroll 16
      for (int i = 0; i < width; ++i) copy[i] = v[i];
      return store_part(b, copy, at, count, channels);
    }
    if constexpr (Residual) {
#pragma GCC unroll 16
      for (int i = 0; i < width; ++i) v[i] += S::load(b.residual + at + i * b.y_step);
    }
    if (b.clamp) {
      const F lo = S::set(b.lo), hi = S::set(b.hi);
#pragma GCC unroll 16
      for (int i = 0; i < width; ++i) v[i] = S::clamp(v[i], lo, hi);
    }
#pragma GCC unroll 16
    for (int i = 0; i < width; ++i) S::store(b.y + at + i * b.y_step, v[i]);
  }

  [[gnu::noinline]] static void store_part(const BlocksToPlanes& b, const F (&v)[width], int64_t at, int64_t count,
                                           int64_t channels) {
    for (int64_t i = 0; i < channels; ++i, at += b.y_step) {
      F value = v[i];
      if (b.residual) value += S::load_part(b.residual + at, count);
      if (b.clamp) value = S::clamp(value, S::set(b.lo), S::set(b.hi));
      S::store_part(b.y + at, value, count);
    }
  }

  // Exchanges squares of Half rows and columns beside the diagonal of squares that are twice as large, then larger
  // ones.
  template <int Half>
  [[gnu::always_inline]] static void transpose(F (&v)[width]) {
    if constexpr (Half < width) {
#pragma GCC unroll 16
      for (int i = 0; i < width; ++i) {
        if (i & Half) continue;
        const F first = v[i], second = v[i + Half];
        v[i] = upper<Half>(first, second, std::make_integer_sequence<int, width>{});
        v[i + Half] = lower<Half>(first, second, std::make_integer_sequence<int, width>{});
      }
      transpose<2 * Half>(v);
    }
  }
  template <int Half, int... Lane>
  static F upper(F a, F b, std::integer_sequence<int, Lane...>) {
    return __builtin_shufflevector(a, b, (Lane & Half ? width + Lane - Half : Lane)...);
  }
  template <int Half, int... Lane>
  static F lower(F a, F b, std::integer_sequence<int, Lane...>) {
    return __builtin_shufflevector(a, b, (Lane & Half ? width + Lane : Lane + Half)...);
  }
};

}  // namespace tenon::kernels

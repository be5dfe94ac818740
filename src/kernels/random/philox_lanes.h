// Philox on vectors whose lanes of 64 bits have a word each, as products of words need them; avx2.cc and avx512.cc
// instantiate it.
#pragma once

#include <cstring>

#include "kernels/random/random.h"

namespace tenon::kernels {

template <class Arch>
struct PhiloxLanes {
  using U = typename Arch::U;
  static constexpr int width = sizeof(U) / sizeof(uint64_t);
  // Vectors whose rounds overlap.
  static constexpr int vectors = 2;
  static_assert(philox_group % (vectors * width) == 0);

  // The upper halves of lanes are never read, and hold anything.
  struct Words {
    U word[4];
  };

  // Pairs of neighbouring lanes have blocks that are half a vector apart: stored in pairs, words come in order.
  static U lane_numbers() {
    U numbers;
    for (int i = 0; i < width; ++i) numbers[i] = static_cast<uint64_t>(i % 2 * (width / 2) + i / 2);
    return numbers;
  }

  static void words(PhiloxKey key, uint64_t first, int64_t blocks, uint32_t* to) {
    U number = lane_numbers() + first;
    for (int64_t begin = 0; begin < blocks; begin += vectors * width) {
      Words state[vectors];
      for (Words& each : state) {
        each = {{number, number >> 32, U{}, U{}}};
        number += width;
      }
      U key0 = U{} + key.words[0], key1 = U{} + key.words[1];
      for (int round = 0; round < philox_round_count; ++round) {
        for (Words& each : state) take_round(each, key0, key1);
        key0 += philox_steps[0];
        key1 += philox_steps[1];
      }
      for (const Words& each : state) {
        store(each, to);
        to += 4 * width;
      }
    }
  }

  [[gnu::always_inline]] static void take_round(Words& state, U key0, U key1) {
    auto& [c0, c1, c2, c3] = state.word;
    const U a = Arch::multiply_low_halves(c0, U{} + philox_factors[0]);
    const U b = Arch::multiply_low_halves(c2, U{} + philox_factors[1]);
    c0 = (b >> 32) ^ c1 ^ key0;
    c1 = b;
    c2 = (a >> 32) ^ c3 ^ key1;
    c3 = a;
  }

  [[gnu::always_inline]] static void store(const Words& state, uint32_t* to) {
    constexpr uint64_t low = 0xFFFFFFFF;
    const U front = (state.word[0] & low) | (state.word[1] << 32), back = (state.word[2] & low) | (state.word[3] << 32);
    const U pairs[2] = {Arch::even_lanes_in_pairs(front, back), Arch::odd_lanes_in_pairs(front, back)};
    std::memcpy(to, pairs, sizeof pairs);
  }

  static constexpr PhiloxKernels table() { return {Arch::isa, words}; }
};

}  // namespace tenon::kernels

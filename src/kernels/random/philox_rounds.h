// The rounds of Philox as loops that compilers vectorise.
#pragma once

#include "kernels/random/random.h"

namespace tenon::kernels {
namespace {

// For each lane of counters, whose four words are the rows.
template <int lanes>
void philox_rounds(uint32_t (&counter)[4][lanes], PhiloxKey key) {
  for (int round = 0; round < philox_round_count; ++round) {
    for (int i = 0; i < lanes; ++i) {
      const uint64_t a = uint64_t{philox_factors[0]} * counter[0][i], b = uint64_t{philox_factors[1]} * counter[2][i];
      counter[0][i] = static_cast<uint32_t>(b >> 32) ^ counter[1][i] ^ key.words[0];
      counter[1][i] = static_cast<uint32_t>(b);
      counter[2][i] = static_cast<uint32_t>(a >> 32) ^ counter[3][i] ^ key.words[1];
      counter[3][i] = static_cast<uint32_t>(a);
    }
    key.words[0] += philox_steps[0];
    key.words[1] += philox_steps[1];
  }
}

template <int lanes>
void philox_words_in_loops(PhiloxKey key, uint64_t first, int64_t blocks, uint32_t* words) {
  static_assert(philox_group % lanes == 0);
  for (int64_t begin = 0; begin < blocks; begin += lanes) {
    uint32_t counter[4][lanes] = {};
    for (int i = 0; i < lanes; ++i) {
      const uint64_t number = first + static_cast<uint64_t>(begin + i);
      counter[0][i] = static_cast<uint32_t>(number);
      counter[1][i] = static_cast<uint32_t>(number >> 32);
    }
    philox_rounds(counter, key);
    for (int i = 0; i < lanes; ++i) {
      for (int word = 0; word < 4; ++word) *words++ = counter[word][i];
    }
  }
}

}  // namespace
}  // namespace tenon::kernels

// Random numbers that depend on a seed and a position only, so that any number of threads draws the same ones.
#pragma once

#include <array>
#include <cstdint>

#include "kernels/dispatch.h"

namespace tenon::kernels {

struct PhiloxKey {
  uint32_t words[2];
};

// Philox 4x32-10 of Salmon, Moraes, Dror and Shaw, "Parallel random numbers: as easy as 1, 2, 3" (2011): 128 random
// bits for each counter and key.
std::array<uint32_t, 4> philox(std::array<uint32_t, 4> counter, PhiloxKey key);

// An endless list of random numbers. Number i is the same in whatever ranges the list is read.
class RandomNumbers {
 public:
  explicit RandomNumbers(uint64_t seed) : key_{static_cast<uint32_t>(seed), static_cast<uint32_t>(seed >> 32)} {}

  // Numbers first … first + n - 1, evenly distributed over [0, 1): multiples of 2^-24 or 2^-53.
  void uniform(int64_t first, float* y, int64_t n) const;
  void uniform(int64_t first, double* y, int64_t n) const;
  // The same with mean 0 and variance 1, by the method of Box and Muller.
  void normal(int64_t first, float* y, int64_t n) const;
  void normal(int64_t first, double* y, int64_t n) const;

 private:
  PhiloxKey key_;
};

// Another seed in each call, and in each process.
uint64_t fresh_seed();

inline constexpr int philox_round_count = 10;
inline constexpr uint32_t philox_factors[2] = {0xD2511F53, 0xCD9E8D57};
// That are added to the key after each round.
inline constexpr uint32_t philox_steps[2] = {0x9E3779B9, 0xBB67AE85};

// Blocks are made in groups of so many.
inline constexpr int philox_group = 16;

struct PhiloxKernels {
  Isa isa;
  // The words of blocks first, first + 1, …, those of the counters {block, block >> 32, 0, 0}, one after the other.
  // `blocks` is a multiple of philox_group.
  void (*words)(PhiloxKey key, uint64_t first, int64_t blocks, uint32_t* to);
};

TENON_ISA_TABLES(PhiloxKernels, philox_kernels)

}  // namespace tenon::kernels

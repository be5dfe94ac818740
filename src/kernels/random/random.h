// Random numbers that depend on a seed and a position only, so that any number of threads draws the same ones.
#pragma once

#include <array>
#include <cstdint>

namespace tenon::kernels {

// Philox 4x32-10 of Salmon, Moraes, Dror and Shaw, "Parallel random numbers: as easy as 1, 2, 3" (2011): 128 random
// bits for each counter and key.
std::array<uint32_t, 4> philox(std::array<uint32_t, 4> counter, std::array<uint32_t, 2> key);

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
  // Several at a time, which compilers vectorise. Word w of block i is words[w][i].
  static constexpr int together = 8;
  struct Blocks {
    uint32_t words[4][together];
  };
  Blocks blocks(int64_t first) const;

  std::array<uint32_t, 2> key_;
};

// Another seed in each call, and in each process.
uint64_t fresh_seed();

}  // namespace tenon::kernels

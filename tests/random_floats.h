#pragma once

#include <cstdint>
#include <random>
#include <vector>

namespace tenon {

// Between -1 and 1; the same ones for the same seed.
inline std::vector<float> random_floats(int64_t count, unsigned seed) {
  std::mt19937 generator(seed);
  std::uniform_real_distribution<float> distribution(-1, 1);
  std::vector<float> values(static_cast<size_t>(count));
  for (float& value : values) value = distribution(generator);
  return values;
}

}  // namespace tenon

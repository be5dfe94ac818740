#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "kernels/random/random.h"

namespace tenon::kernels {
namespace {

// The test vectors of the authors' implementation.
TEST(Random, Philox) {
  using Block = std::array<uint32_t, 4>;
  EXPECT_EQ(philox({}, {}), (Block{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(philox({~0u, ~0u, ~0u, ~0u}, {~0u, ~0u}), (Block{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(philox({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
            (Block{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(Random, UniformNumbersAreWordsOfPhilox) {
  constexpr int64_t first = (int64_t{1} << 34) - 50, count = 100;
  float y[count];
  RandomNumbers(uint64_t{5} << 32 | 9).uniform(first, y, count);
  for (int64_t i = first; i < first + count; ++i) {
    const auto block = static_cast<uint64_t>(i / 4);
    const auto words = philox({static_cast<uint32_t>(block), static_cast<uint32_t>(block >> 32), 0, 0}, {9, 5});
    EXPECT_EQ(y[i - first], static_cast<float>(words[static_cast<size_t>(i % 4)] >> 8) * 0x1p-24f);
  }
}

template <typename T>
using Draw = void (RandomNumbers::*)(int64_t, T*, int64_t) const;

// The first four moments, within five standard errors.
template <typename T>
void expect_moments(Draw<T> draw, const std::array<double, 4>& moments) {
  std::vector<T> y(100000);
  (RandomNumbers(7).*draw)(0, y.data(), static_cast<int64_t>(y.size()));
  for (int power = 1; power <= 4; ++power) {
    double sum = 0, squares = 0;
    for (T value : y) sum += std::pow(value, power), squares += std::pow(value, 2 * power);
    const auto n = static_cast<double>(y.size());
    const double mean = sum / n, deviation = std::sqrt(squares / n - mean * mean);
    EXPECT_NEAR(mean, moments[static_cast<size_t>(power - 1)], 5 * deviation / std::sqrt(n)) << "moment " << power;
  }
}

TEST(Random, Moments) {
  expect_moments<float>(&RandomNumbers::uniform, {1.0 / 2, 1.0 / 3, 1.0 / 4, 1.0 / 5});
  expect_moments<double>(&RandomNumbers::uniform, {1.0 / 2, 1.0 / 3, 1.0 / 4, 1.0 / 5});
  expect_moments<float>(&RandomNumbers::normal, {0, 1, 0, 3});
  expect_moments<double>(&RandomNumbers::normal, {0, 1, 0, 3});
}

template <typename T>
void expect_same_in_parts(Draw<T> draw) {
  std::vector<T> whole(1000), parts(1000);
  RandomNumbers numbers(123456789012345);
  (numbers.*draw)(0, whole.data(), 1000);
  int64_t at = 0;
  for (int64_t part : {0, 1, 2, 3, 130, 255, 609}) {
    (numbers.*draw)(at, parts.data() + at, part);
    at += part;
  }
  EXPECT_EQ(at, 1000);
  EXPECT_EQ(whole, parts);
  (RandomNumbers(1).*draw)(0, parts.data(), 1000);
  EXPECT_NE(whole, parts);
}

TEST(Random, RangesDoNotMatter) {
  expect_same_in_parts<float>(&RandomNumbers::uniform);
  expect_same_in_parts<double>(&RandomNumbers::uniform);
  expect_same_in_parts<float>(&RandomNumbers::normal);
  expect_same_in_parts<double>(&RandomNumbers::normal);
}

TEST(Random, FreshSeedsDiffer) { EXPECT_NE(fresh_seed(), fresh_seed()); }

}  // namespace
}  // namespace tenon::kernels

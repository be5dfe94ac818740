#include <gtest/gtest.h>

#include <cmath>
#include <numbers>
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

// The tests of numbers run on every instruction set that the processor has.
class Numbers : public testing::TestWithParam<Isa> {
 protected:
  void SetUp() override { ASSERT_EQ(philox_kernels().isa, GetParam()); }

 private:
  ScopedIsa scope_{GetParam()};
};

std::array<uint32_t, 4> words_of_block(int64_t block) {
  const auto number = static_cast<uint64_t>(block);
  return philox({static_cast<uint32_t>(number), static_cast<uint32_t>(number >> 32), 0, 0}, {9, 5});
}
constexpr uint64_t seed_of_words = uint64_t{5} << 32 | 9;

// Where the upper word of the counter becomes 1, and in the middle of vectors.
TEST_P(Numbers, WordsAreThoseOfBlocks) {
  for (const int64_t blocks : {1, 2, 5}) {
    const int64_t count = blocks * philox_group;
    for (const int64_t first : {int64_t{0}, int64_t{3}, (int64_t{1} << 32) - 7, (int64_t{1} << 45) + 1}) {
      std::vector<uint32_t> words(static_cast<size_t>(4 * count) + 1, 77);
      philox_kernels().words({9, 5}, static_cast<uint64_t>(first), count, words.data());
      for (int64_t i = 0; i < 4 * count; ++i) {
        const auto expected = words_of_block(first + i / 4)[static_cast<size_t>(i % 4)];
        ASSERT_EQ(words[static_cast<size_t>(i)], expected) << "word " << i << " from block " << first;
      }
      EXPECT_EQ(words.back(), 77u);
    }
  }
}

TEST_P(Numbers, UniformNumbersAreWords) {
  for (const int64_t count : {1, 2, 3, 5, 100, 511, 513, 1300}) {
    const int64_t first = (int64_t{1} << 34) - 50;
    std::vector<float> y(static_cast<size_t>(count));
    RandomNumbers(seed_of_words).uniform(first, y.data(), count);
    for (int64_t i = first; i < first + count; ++i) {
      const uint32_t word = words_of_block(i / 4)[static_cast<size_t>(i % 4)];
      ASSERT_EQ(y[static_cast<size_t>(i - first)], static_cast<float>(word >> 8) * 0x1p-24f);
    }
    std::vector<double> z(static_cast<size_t>(count));
    RandomNumbers(seed_of_words).uniform(first, z.data(), count);
    for (int64_t i = first; i < first + count; ++i) {
      const auto words = words_of_block(i / 2);
      const auto at = static_cast<size_t>(i % 2 * 2);
      const uint64_t bits = (uint64_t{words[at]} << 32 | words[at + 1]) >> 11;
      ASSERT_EQ(z[static_cast<size_t>(i - first)], static_cast<double>(bits) * 0x1p-53);
    }
  }
}

// Each pair is made of two words, or of two pairs of them.
TEST_P(Numbers, NormalNumbersAreMadeOfWords) {
  constexpr int64_t first = 124, count = 300;
  std::vector<float> y(count);
  std::vector<double> z(count);
  RandomNumbers(seed_of_words).normal(first, y.data(), count);
  RandomNumbers(seed_of_words).normal(first, z.data(), count);
  const auto expected = [](double u, double v, int64_t i) {
    const double angle = 2 * std::numbers::pi * v;
    return std::sqrt(-2 * std::log(u)) * (i % 2 == 0 ? std::cos(angle) : std::sin(angle));
  };
  for (int64_t i = first; i < first + count; ++i) {
    auto words = words_of_block(i / 4);
    const auto at = static_cast<size_t>(i % 4 / 2 * 2);
    EXPECT_NEAR(y[static_cast<size_t>(i - first)], expected((words[at] + 0.5) * 0x1p-32, words[at + 1] * 0x1p-32, i),
                5e-6);
    words = words_of_block(i / 2);
    const double u = 1 - (words[0] * 0x1p-32 + (words[1] >> 11) * 0x1p-53);
    const double v = words[2] * 0x1p-32 + (words[3] >> 11) * 0x1p-53;
    EXPECT_NEAR(z[static_cast<size_t>(i - first)], expected(u, v, i), 1e-12);
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

TEST_P(Numbers, Moments) {
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

TEST_P(Numbers, RangesDoNotMatter) {
  expect_same_in_parts<float>(&RandomNumbers::uniform);
  expect_same_in_parts<double>(&RandomNumbers::uniform);
  expect_same_in_parts<float>(&RandomNumbers::normal);
  expect_same_in_parts<double>(&RandomNumbers::normal);
}

INSTANTIATE_TEST_SUITE_P(Isas, Numbers, testing::ValuesIn(available_isas(cpu_features())),
                         [](const auto& isa) { return std::string(isa_name(isa.param)); });

TEST(Random, FreshSeedsDiffer) { EXPECT_NE(fresh_seed(), fresh_seed()); }

}  // namespace
}  // namespace tenon::kernels

#include "kernels/chain/chain.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <functional>
#include <limits>
#include <string>
#include <vector>

namespace tenon::kernels {
namespace {

using O = ChainOperation;

float lesser(float a, float b) { return a < b || a != a ? a : b; }
float greater(float a, float b) { return a > b || a != a ? a : b; }

struct Row {
  const char* name;
  O operation;
  std::function<float(float, float)> expected;  // of x and the operand
};

constexpr float low = -0.75f, high = 2.5f;

const Row rows[] = {
    {"add", O::add, [](float x, float b) { return x + b; }},
    {"subtract", O::subtract, [](float x, float b) { return x - b; }},
    {"subtract_from", O::subtract_from, [](float x, float b) { return b - x; }},
    {"multiply", O::multiply, [](float x, float b) { return x * b; }},
    {"divide", O::divide, [](float x, float b) { return x / b; }},
    {"divide_into", O::divide_into, [](float x, float b) { return b / x; }},
    {"minimum", O::minimum, [](float x, float b) { return lesser(x, b); }},
    {"minimum_of", O::minimum_of, [](float x, float b) { return lesser(b, x); }},
    {"maximum", O::maximum, [](float x, float b) { return greater(x, b); }},
    {"maximum_of", O::maximum_of, [](float x, float b) { return greater(b, x); }},
    {"negate", O::negate, [](float x, float) { return -x; }},
    {"absolute", O::absolute, [](float x, float) { return std::fabs(x); }},
    {"relu", O::relu, [](float x, float) { return x <= 0 ? 0 : x; }},
    {"leaky_relu", O::leaky_relu, [](float x, float) { return x < 0 ? low * x : x; }},
    {"clip", O::clip, [](float x, float) { return x < low    ? low
                                                  : x > high ? high
                                                             : x; }},
    {"square", O::square, [](float x, float) { return x * x; }},
    {"square_root", O::square_root, [](float x, float) { return std::sqrt(x); }},
    {"reciprocal", O::reciprocal, [](float x, float) { return 1 / x; }},
};

std::vector<float> numbers(size_t count, uint32_t seed) {
  const float special[] = {0.0f, -0.0f, 1.0f, INFINITY, -INFINITY, NAN, 1e-40f, 3e38f, -3e38f};
  std::vector<float> result(count);
  for (size_t i = 0; i < count; ++i) {
    seed = seed * 1664525 + 1013904223;
    result[i] = seed % 7 == 0 ? special[seed / 7 % std::size(special)]
                              : static_cast<float>(static_cast<int32_t>(seed)) * 0x1p-29f;
  }
  return result;
}

// NaN is NaN: which one it is, compilers do not say.
bool same(float a, float b) { return std::bit_cast<uint32_t>(a) == std::bit_cast<uint32_t>(b) || (a != a && b != b); }

const int64_t sizes[] = {1, 3, 4, 15, 16, 31, 64, 100, 255, 1000};

class Chain : public testing::TestWithParam<Isa> {};

TEST_P(Chain, EveryOperation) {
  const ScopedIsa forced(GetParam());
  ASSERT_EQ(chain_kernels().isa, GetParam());
  for (const Row& row : rows) {
    for (int64_t n : sizes) {
      const std::vector<float> x = numbers(static_cast<size_t>(n), 1), b = numbers(static_cast<size_t>(n), 2);
      for (int64_t stride : {0, 1}) {
        SCOPED_TRACE(std::string(row.name) + " of " + std::to_string(n) + ", stride " + std::to_string(stride));
        std::vector<float> y(x.size());
        const ChainStep step{row.operation, b.data(), stride, low, high};
        f32_chain(x.data(), {&step, 1}, y.data(), n);
        for (size_t i = 0; i < x.size(); ++i)
          ASSERT_TRUE(same(y[i], row.expected(x[i], b[stride ? i : 0]))) << x[i] << " gives " << y[i];
      }
    }
  }
}

TEST_P(Chain, BoundsThatAreNaNAreNoneButFactorsAre) {
  const ScopedIsa forced(GetParam());
  ASSERT_EQ(chain_kernels().isa, GetParam());
  const std::vector<float> x = numbers(100, 1);
  std::vector<float> clipped(x.size()), leaked(x.size());
  const ChainStep clip{O::clip, nullptr, 0, NAN, NAN}, leaky_relu{O::leaky_relu, nullptr, 0, NAN};
  f32_chain(x.data(), {&clip, 1}, clipped.data(), 100);
  f32_chain(x.data(), {&leaky_relu, 1}, leaked.data(), 100);
  for (size_t i = 0; i < x.size(); ++i) {
    ASSERT_TRUE(same(clipped[i], x[i])) << i;
    ASSERT_TRUE(same(leaked[i], x[i] < 0 ? NAN : x[i])) << i;
  }
}

TEST_P(Chain, OneAfterTheOtherInPlace) {
  const ScopedIsa forced(GetParam());
  ASSERT_EQ(chain_kernels().isa, GetParam());
  for (int64_t n : sizes) {
    std::vector<float> x = numbers(static_cast<size_t>(n), 1), b = numbers(static_cast<size_t>(n), 2), expected = x;
    std::vector<ChainStep> steps;
    for (const Row& row : rows) {
      steps.push_back({row.operation, b.data(), 1, low, high});
      for (size_t i = 0; i < x.size(); ++i) expected[i] = row.expected(expected[i], b[i]);
    }
    std::vector<float> y = x;
    f32_chain(y.data(), steps, y.data(), n);
    for (size_t i = 0; i < x.size(); ++i) ASSERT_TRUE(same(y[i], expected[i])) << i;
    y = b;
    for (ChainStep& step : steps) step.operand = y.data();
    f32_chain(x.data(), steps, y.data(), n);
    for (size_t i = 0; i < x.size(); ++i) ASSERT_TRUE(same(y[i], expected[i])) << i;
  }
}

INSTANTIATE_TEST_SUITE_P(Isas, Chain, testing::ValuesIn(available_wide_isas(cpu_features())),
                         [](const auto& isa) { return std::string(isa_name(isa.param)); });

}  // namespace
}  // namespace tenon::kernels

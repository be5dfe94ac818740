#include "kernels/math/math.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "tenon/scalar.h"

namespace tenon::kernels {
namespace {

const float infinity = std::numeric_limits<float>::infinity();

double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }
double gelu(double x) { return 0.5 * x * std::erfc(-x / std::sqrt(2.0)); }
double gelu_tanh(double x) { return x * sigmoid(2 * std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)); }
double silu(double x) { return x * sigmoid(x); }
double hard_swish(double x) { return x * std::clamp(x / 6 + 0.5, 0.0, 1.0); }
double softplus(double x) { return std::max(x, 0.0) + std::log1p(std::exp(-std::abs(x))); }

struct Row {
  const char* name;
  void (*function)(const float*, float*, int64_t);
  double (*reference)(double);
  float low, high;  // the range that is tested densely
  double ulps;      // allowed, or
  double absolute;  // allowed
  float at_minus_infinity, at_infinity;
};

// What is smaller than any normal float may be given as 0.
constexpr double smallest = std::numeric_limits<float>::min();

const Row rows[] = {
    {"exp", f32_exp, std::exp, -110, 90, 2, 0, 0, infinity},
    {"expm1", f32_expm1, std::expm1, -110, 90, 2.5, 0, -1, infinity},
    {"log", f32_log, std::log, 1e-45f, 100, 2, 0, NAN, infinity},
    {"log large", f32_log, std::log, 100, 3e38f, 2, 0, NAN, infinity},
    {"tanh", f32_tanh, std::tanh, -12, 12, 4, 0, -1, 1},
    {"sigmoid", f32_sigmoid, sigmoid, -100, 100, 4, smallest, 0, 1},
    {"erf", f32_erf, std::erf, -5, 5, 4, 2e-7, -1, 1},
    {"gelu", f32_gelu, gelu, -20, 20, 4, 3e-7, 0, infinity},
    {"gelu tanh", f32_gelu_tanh, gelu_tanh, -20, 20, 4, 3e-7, 0, infinity},
    {"silu", f32_silu, silu, -44, 100, 5, 1e-36, 0, infinity},
    {"silu", f32_silu, silu, -100, -44, 5, 3.5e-18, 0, infinity},
    {"hard swish", f32_hard_swish, hard_swish, -20, 20, 4, 2e-7, 0, infinity},
    {"softplus", f32_softplus, softplus, -100, 100, 4, smallest, 0, infinity},
    {"sin", f32_sin, std::sin, -20, 20, 2, 1e-7, NAN, NAN},
    {"cos", f32_cos, std::cos, -20, 20, 2, 1e-7, NAN, NAN},
    {"asin", f32_asin, std::asin, -1, 1, 2.5, 0, NAN, NAN},
    {"acos", f32_acos, std::acos, -1, 1, 2, 0, NAN, NAN},
    {"atan", f32_atan, std::atan, -20, 20, 2, 0, static_cast<float>(-M_PI_2), static_cast<float>(M_PI_2)},
    {"atan huge", f32_atan, std::atan, -3e38f, 3e38f, 2, 0, static_cast<float>(-M_PI_2), static_cast<float>(M_PI_2)},
    {"reciprocal", f32_reciprocal, [](double x) { return 1 / x; }, 0.1f, 20, 0.5, 0, 0, 0},
    {"sin large", f32_sin, std::sin, -20000, 20000, 2, 2e-7, NAN, NAN},
    {"sin huge", f32_sin, std::sin, -3e38f, 3e38f, 2, 2e-7, NAN, NAN},
    {"sin of many turns", f32_sin, std::sin, -2e12f, 2e12f, 2, 2e-7, NAN, NAN},
    {"cos of many turns", f32_cos, std::cos, -2e12f, 2e12f, 2, 2e-7, NAN, NAN},
    {"tan of many turns", f32_tan, std::tan, -2e12f, 2e12f, 3.5, 0, NAN, NAN},
    {"cos large", f32_cos, std::cos, -20000, 20000, 2, 2e-7, NAN, NAN},
    {"tan", f32_tan, std::tan, -20, 20, 3.5, 0, NAN, NAN},
    {"tan large", f32_tan, std::tan, -20000, 20000, 3.5, 0, NAN, NAN},
    {"tan huge", f32_tan, std::tan, -3e38f, 3e38f, 3.5, 0, NAN, NAN},
    {"sinh", f32_sinh, std::sinh, -91, 91, 3, 0, -infinity, infinity},
    {"cosh", f32_cosh, std::cosh, -91, 91, 3, 0, infinity, infinity},
    {"asinh", f32_asinh, std::asinh, -20, 20, 3, 0, -infinity, infinity},
    {"asinh huge", f32_asinh, std::asinh, -3e38f, 3e38f, 3, 0, -infinity, infinity},
    {"acosh", f32_acosh, std::acosh, 1, 20, 3, 0, NAN, infinity},
    {"acosh huge", f32_acosh, std::acosh, 1, 3e38f, 3, 0, NAN, infinity},
    {"atanh", f32_atanh, std::atanh, -1, 1, 3, 0, NAN, NAN},
};

// Distance in units of the last place of the expected value.
double ulps(float actual, double expected) {
  const float rounded = static_cast<float>(expected);
  if (std::isinf(rounded) || std::isinf(actual)) return actual == rounded ? 0 : infinity;
  const float size = std::max(std::abs(rounded), std::numeric_limits<float>::min());
  const double unit = static_cast<double>(std::nextafter(size, infinity)) - size;
  return std::abs(actual - expected) / unit;
}

// Every `step`-th float between the bounds, in both signs where they allow it.
std::vector<float> dense(float low, float high) {
  std::vector<float> values;
  constexpr uint32_t step = 1009;
  for (uint32_t bits = 0; bits < 0x7f800000; bits += step) {
    for (float value : {std::bit_cast<float>(bits), -std::bit_cast<float>(bits)}) {
      if (value >= low && value <= high) values.push_back(value);
    }
  }
  for (int i = 0; i <= 100000; ++i) {
    values.push_back(static_cast<float>(low + (static_cast<double>(high) - low) * i / 100000));
  }
  return values;
}

class Math : public testing::TestWithParam<Isa> {};

TEST_P(Math, IsAccurate) {
  const ScopedIsa forced(GetParam());
  ASSERT_EQ(math_isa(), GetParam());
  for (const Row& row : rows) {
    const std::vector<float> x = dense(row.low, row.high);
    std::vector<float> y(x.size());
    row.function(x.data(), y.data(), static_cast<int64_t>(x.size()));
    double worst = 0;
    float worst_x = 0;
    for (size_t i = 0; i < x.size(); ++i) {
      const double expected = row.reference(x[i]);
      ASSERT_FALSE(std::isnan(y[i])) << row.name << " of " << x[i];
      if (std::abs(y[i] - expected) <= row.absolute) continue;
      const double distance = ulps(y[i], expected);
      if (distance > worst) worst = distance, worst_x = x[i];
    }
    EXPECT_LE(worst, row.ulps) << row.name << " of " << worst_x;
  }
}

TEST_P(Math, SpecialValues) {
  const ScopedIsa forced(GetParam());
  for (const Row& row : rows) {
    const float x[3] = {NAN, -infinity, infinity};
    float y[3];
    row.function(x, y, 3);
    EXPECT_TRUE(std::isnan(y[0])) << row.name;
    for (int i : {1, 2}) {
      const float expected = i == 1 ? row.at_minus_infinity : row.at_infinity;
      if (std::isnan(expected)) {
        EXPECT_TRUE(std::isnan(y[i])) << row.name << " of " << x[i] << " is " << y[i];
      } else {
        EXPECT_EQ(y[i], expected) << row.name << " of " << x[i];
      }
    }
  }
  const float x[4] = {0.0f, -1.0f, 1.0f, -0.0f};
  float y[4];
  f32_log(x, y, 4);
  EXPECT_EQ(y[3], -infinity);
  EXPECT_EQ(y[0], -infinity);
  EXPECT_TRUE(std::isnan(y[1]));
  EXPECT_EQ(y[2], 0.0f);
  for (auto function :
       {f32_expm1, f32_tanh, f32_erf, f32_asin, f32_atan, f32_sin, f32_tan, f32_sinh, f32_asinh, f32_atanh}) {
    function(x, y, 4);
    EXPECT_TRUE(y[0] == 0 && !std::signbit(y[0]));
    EXPECT_TRUE(y[3] == 0 && std::signbit(y[3]));
  }
  const float outside[2] = {1.5f, -1.0000001f};
  for (auto function : {f32_asin, f32_acos, f32_atanh}) {
    function(outside, y, 2);
    EXPECT_TRUE(std::isnan(y[0]) && std::isnan(y[1]));
  }
  const float below[2] = {0.99999994f, -2};
  f32_acosh(below, y, 2);
  EXPECT_TRUE(std::isnan(y[0]) && std::isnan(y[1]));
}

struct DoubleRow {
  const char* name;
  void (*function)(const double*, double*, int64_t);
  long double (*reference)(long double);
  double low, high, step;  // where it is tested, also where it may be 0
  double ulps;             // allowed
  double at_minus_infinity, at_infinity;
};
const DoubleRow double_rows[] = {
    {"exp", f64_exp, std::exp, -746, 710, 0.0371, 1.25, 0, infinity},
    {"exp", f64_exp, std::exp, -1, 1, 0.000171, 1.25, 0, infinity},
    {"sin", f64_sin, std::sin, -20, 20, 0.00171, 2.5, NAN, NAN},
    {"sin", f64_sin, std::sin, -1.1e6, 1.1e6, 97.1, 2.5, NAN, NAN},
    {"cos", f64_cos, std::cos, -20, 20, 0.00171, 2.5, NAN, NAN},
    {"cos", f64_cos, std::cos, -1.1e6, 1.1e6, 97.1, 2.5, NAN, NAN},
};

// Units in the last place of the double nearest to `expected`.
double double_ulps(double value, long double expected) {
  if (std::isinf(value)) return std::isinf(static_cast<double>(expected)) ? 0 : infinity;
  const int exponent = expected == 0 ? -1022 : std::max(std::ilogb(expected), -1022);
  return static_cast<double>(std::abs(value - expected) / std::ldexp(1.0L, exponent - 52));
}

TEST_P(Math, DoublesAreAccurate) {
  const ScopedIsa forced(GetParam());
  for (const DoubleRow& row : double_rows) {
    std::vector<double> x, one(1);
    const auto count = static_cast<int64_t>((row.high - row.low) / row.step);
    for (int64_t i = 0; i < count; ++i) {
      const double at = row.low + static_cast<double>(i) * row.step;
      x.push_back(at);
      x.push_back(std::nearbyint(at / M_PI_2) * M_PI_2);
    }
    std::vector<double> y(x.size());
    row.function(x.data(), y.data(), static_cast<int64_t>(x.size()));
    for (size_t i = 0; i < x.size(); ++i) {
      EXPECT_LE(double_ulps(y[i], row.reference(x[i])), row.ulps) << row.name << " of " << x[i];
      row.function(&x[i], one.data(), 1);
      EXPECT_EQ(std::bit_cast<int64_t>(one[0]), std::bit_cast<int64_t>(y[i])) << row.name << " of " << x[i];
    }
    for (size_t n = 0; n < 600; n += 1 + n / 8) {
      std::vector<double> part(n + 1, 7.0), in_place(x.begin(), x.begin() + static_cast<int64_t>(n));
      row.function(x.data(), part.data(), static_cast<int64_t>(n));
      EXPECT_EQ(part.back(), 7.0);
      EXPECT_TRUE(std::equal(part.begin(), part.end() - 1, y.begin())) << row.name;
      row.function(in_place.data(), in_place.data(), static_cast<int64_t>(n));
      EXPECT_TRUE(std::equal(in_place.begin(), in_place.end(), y.begin())) << row.name;
    }
    // Among so many that vectors are used.
    std::vector<double> special(512, 0.5);
    special[3] = NAN, special[300] = -infinity, special[301] = infinity;
    row.function(special.data(), special.data(), 512);
    EXPECT_TRUE(std::isnan(special[3]));
    for (auto [at, limit] : {std::pair(300, row.at_minus_infinity), std::pair(301, row.at_infinity)}) {
      const double got = special[static_cast<size_t>(at)];
      EXPECT_TRUE(got == limit || (std::isnan(got) && std::isnan(limit))) << row.name << " is " << got;
    }
  }
}

// Some are computed as floats, others by vectors of doubles, the largest one by one.
TEST_P(Math, AnglesDoNotDependOnTheirNeighbours) {
  const ScopedIsa forced(GetParam());
  std::vector<float> x;
  for (const float scale : {1.0f, 1e3f, 1e5f, 1e9f, 1e14f, 1e30f}) {
    for (int i = 0; i < 100; ++i) x.push_back(static_cast<float>(i % 7 - 3) * scale / static_cast<float>(i + 1));
  }
  std::rotate(x.begin(), x.begin() + 250, x.end());
  x[3] = infinity;
  for (auto function : {f32_sin, f32_cos, f32_tan}) {
    std::vector<float> y(x.size());
    function(x.data(), y.data(), static_cast<int64_t>(x.size()));
    for (size_t i = 0; i < x.size(); ++i) {
      float alone = 0;
      function(&x[i], &alone, 1);
      EXPECT_EQ(std::bit_cast<int32_t>(alone), std::bit_cast<int32_t>(y[i])) << x[i];
    }
  }
}

// Which of several vectors is divided depends on where it is.
TEST_P(Math, ReciprocalsAreThoseOfDivision) {
  const ScopedIsa forced(GetParam());
  std::vector<float> x;
  for (uint32_t bits = 0x3f800000; bits < 0x40000000; ++bits) x.push_back(std::bit_cast<float>(bits));
  for (uint32_t bits = 0; bits < 0x7f900000; bits += 997) {
    x.push_back(std::bit_cast<float>(bits));
    x.push_back(-std::bit_cast<float>(bits));
  }
  std::vector<float> y(x.size());
  for (int64_t first : {0, 16}) {
    f32_reciprocal(x.data() + first, y.data() + first, std::ssize(x) - first);
    int64_t wrong = 0;
    for (size_t i = static_cast<size_t>(first); i < x.size(); ++i) {
      const float expected = 1 / x[i];
      wrong += std::bit_cast<int32_t>(expected) != std::bit_cast<int32_t>(y[i]) && expected == expected;
      wrong += std::isnan(expected) && !std::isnan(y[i]);
    }
    EXPECT_EQ(wrong, 0);
  }
  f32_reciprocal(x.data(), x.data(), std::ssize(x));
  EXPECT_TRUE(std::equal(x.begin(), x.begin() + 0x800000, y.begin()));
}

struct HalfRow {
  const char* name;
  void (*function)(const uint16_t*, uint16_t*, int64_t);
  double (*reference)(double);
  double absolute;  // allowed, beside one unit in the last place
};
const HalfRow half_rows[] = {{"erf", f16_erf, std::erf, 0},
                             {"gelu", f16_gelu, gelu, 1e-6},
                             {"tanh", f16_tanh, std::tanh, 0},
                             {"gelu tanh", f16_gelu_tanh, gelu_tanh, 1e-6},
                             {"sigmoid", f16_sigmoid, sigmoid, 0},
                             {"silu", f16_silu, silu, 0},
                             {"hard swish", f16_hard_swish, hard_swish, 1e-6}};

// Of all half precision floats.
TEST_P(Math, HalvesAreAccurate) {
  const ScopedIsa forced(GetParam());
  std::vector<uint16_t> x(1 << 16), y(x.size());
  for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<uint16_t>(i);
  for (const HalfRow& row : half_rows) {
    row.function(x.data(), y.data(), static_cast<int64_t>(x.size()));
    for (size_t i = 0; i < x.size(); ++i) {
      const auto value = static_cast<float>(float16::from_bits(x[i])),
                 result = static_cast<float>(float16::from_bits(y[i]));
      if (std::isnan(value)) {
        EXPECT_TRUE(std::isnan(result)) << row.name;
        continue;
      }
      // Minus infinity times the 0 that the other factor is then.
      const double at_end = row.reference(value), expected = value == -infinity && std::isnan(at_end) ? 0 : at_end;
      if (std::isinf(expected) || std::isinf(result)) {
        EXPECT_EQ(static_cast<float>(float16(static_cast<float>(expected))), result) << row.name << " of " << value;
        continue;
      }
      const double unit = std::ldexp(1.0, std::max(std::ilogb(expected), -14) - 10);
      EXPECT_LE(std::abs(result - expected), row.absolute + unit) << row.name << " of " << value;
    }
    for (int64_t n = 0; n < 40; ++n) {
      std::vector<uint16_t> part(static_cast<size_t>(n) + 1, 7);
      row.function(x.data() + 0x3c00, part.data(), n);
      EXPECT_EQ(part.back(), 7);
      EXPECT_TRUE(std::equal(part.begin(), part.end() - 1, y.begin() + 0x3c00)) << row.name;
    }
  }
}

TEST_P(Math, EveryLengthAndInPlace) {
  const ScopedIsa forced(GetParam());
  for (const Row& row : rows) {
    for (int64_t n = 0; n < 40; ++n) {
      std::vector<float> x(static_cast<size_t>(n) + 1, 5.0f), y(x.size(), 7.0f);
      for (int64_t i = 0; i < n; ++i) x[static_cast<size_t>(i)] = 0.25f + 0.1f * static_cast<float>(i);
      row.function(x.data(), y.data(), n);
      EXPECT_EQ(y.back(), 7.0f);
      row.function(x.data(), x.data(), n);
      x.back() = 7.0f;
      for (size_t i = 0; i < x.size(); ++i)
        EXPECT_EQ(std::bit_cast<int32_t>(x[i]), std::bit_cast<int32_t>(y[i])) << row.name;
    }
  }
}

// As doubles round to floats; what is 0, infinite or no number, or has a sign, as std::pow.
TEST_P(Math, Powers) {
  const ScopedIsa forced(GetParam());
  const std::vector<float> bases{1,      0.99999994f, 1.0000001f, 0.1f, 2,    10,  1e-38f, 3e38f,
                                 1e-45f, 0.5f,        7.25f,      0,    -0.f, -2,  -1.5,   infinity,
                                 NAN,    -infinity,   123.456f,   1.5f, 3,    100, 1e4f};
  const std::vector<float> exponents{0,  1,     -1,     2,        3,         0.5f, -0.5f,  2.5f, 1e7f, -1e7f, 30,
                                     -7, 0.01f, 100.5f, infinity, -infinity, NAN,  1e-30f, 5,    127,  -126};
  std::vector<float> x, y, expected;
  for (float base : bases) {
    for (float exponent : exponents) {
      x.push_back(base), y.push_back(exponent);
      expected.push_back(static_cast<float>(std::pow(static_cast<double>(base), static_cast<double>(exponent))));
    }
  }
  const auto check = [&](const std::vector<float>& z, size_t begin, size_t step) {
    for (size_t i = 0; i < z.size(); ++i) {
      const float wanted = expected[begin + i * step];
      if (std::isnan(wanted)) {
        EXPECT_TRUE(std::isnan(z[i]));
      } else {
        EXPECT_EQ(std::signbit(z[i]), std::signbit(wanted));
        EXPECT_LE(ulps(z[i], wanted), 1) << x[begin + i * step] << " to " << y[begin + i * step];
      }
    }
  };
  for (size_t n : {size_t{0}, size_t{1}, size_t{7}, size_t{257}, x.size()}) {
    std::vector<float> z(n + 1, 7.0f);
    f32_pow({x.data(), 1, y.data(), 1, z.data(), static_cast<int64_t>(n)});
    EXPECT_EQ(z.back(), 7.0f);
    z.pop_back();
    check(z, 0, 1);
  }
  std::vector<float> z(exponents.size());
  for (size_t i = 0; i < bases.size(); ++i) {
    f32_pow({&bases[i], 0, exponents.data(), 1, z.data(), std::ssize(z)});
    check(z, i * exponents.size(), 1);
  }
  for (size_t i = 0; i < exponents.size(); ++i) {
    z = bases;
    f32_pow({z.data(), 1, &exponents[i], 0, z.data(), std::ssize(z)});
    check(z, i, exponents.size());
  }
}

INSTANTIATE_TEST_SUITE_P(Isas, Math, testing::ValuesIn(available_wide_isas(cpu_features())),
                         [](const auto& isa) { return std::string(isa_name(isa.param)); });

}  // namespace
}  // namespace tenon::kernels

#include "kernels/gemm_nbits/gemm_nbits.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

#include "base/cpu_features.h"

namespace tenon::kernels {
namespace {

struct Example {
  int64_t n, k;
  int bits;
  int64_t block;
  enum Zeros { none, bytes, floats } zeros;
  std::vector<uint8_t> codes, byte_zeros;
  std::vector<float> scales, float_zeros;

  Example(int64_t columns, int64_t steps, int bit_count, int64_t block_size, Zeros kind)
      : n(columns), k(steps), bits(bit_count), block(block_size), zeros(kind) {
    std::mt19937 random(static_cast<unsigned>(n * k));
    const int64_t blocks = (k + block - 1) / block;
    codes.resize(static_cast<size_t>(n * blocks * block * bits / 8));
    scales.resize(static_cast<size_t>(n * blocks));
    byte_zeros.resize(scales.size());
    float_zeros.resize(scales.size());
    for (uint8_t& code : codes) code = static_cast<uint8_t>(random());
    for (size_t i = 0; i < scales.size(); ++i) {
      scales[i] = 0.001f * static_cast<float>(random() % 100 + 1);
      byte_zeros[i] = static_cast<uint8_t>(random() % (1u << bits));
      float_zeros[i] = static_cast<float>(random() % 1000) * 0.01f;
    }
  }

  NbitsMatrix matrix() const {
    return {n,
            k,
            bits,
            block,
            codes.data(),
            scales.data(),
            zeros != none,
            zeros == bytes ? byte_zeros.data() : nullptr,
            zeros == floats ? float_zeros.data() : nullptr};
  }

  double weight(int64_t column, int64_t step) const {
    const int64_t blocks = (k + block - 1) / block, bit = (column * blocks * block + step) * bits;
    const auto at = static_cast<size_t>(column * blocks + step / block);
    const int code = codes[static_cast<size_t>(bit / 8)] >> (bit % 8) & ((1 << bits) - 1);
    const double zero = zeros == floats  ? static_cast<double>(float_zeros[at])
                        : zeros == bytes ? byte_zeros[at]
                                         : 1 << (bits - 1);
    return (code - zero) * static_cast<double>(scales[at]);
  }
};

std::vector<float> numbers(int64_t count) {
  std::mt19937 random(5);
  std::normal_distribution<float> normal;
  std::vector<float> result(static_cast<size_t>(count));
  for (float& x : result) x = normal(random);
  return result;
}

std::vector<float> product(const NbitsKernels& kernels, const Example& e, int digits, int64_t m,
                           const std::vector<float>& a, const std::vector<float>& bias) {
  ThreadPool pool(2);
  const NbitsWeights weights(pool, e.matrix(), kernels);
  std::vector<float> y(static_cast<size_t>(m * e.n), 99);
  gemm_nbits(pool, digits, m, a.data(), weights, bias.empty() ? nullptr : bias.data(), y.data());
  return y;
}

class GemmNbits : public testing::TestWithParam<const NbitsKernels*> {};

TEST_P(GemmNbits, MatchesReference) {
  const int64_t shapes[][4] = {{1, 1, 1, 16},     {1, 8, 32, 32},   {2, 9, 33, 16},    {4, 24, 96, 32},
                               {5, 17, 130, 128}, {9, 33, 300, 64}, {3, 31, 640, 256}, {70, 40, 64, 16},
                               {23, 9, 640, 256}, {33, 17, 200, 96}};
  // How far a sum may be off, relative to that of the products without their signs.
  const double tolerances[] = {1e-2, 5e-5, 4e-7};
  for (const auto& [m, n, k, block] : shapes) {
    for (int bits : {2, 4, 8}) {
      for (Example::Zeros zeros : {Example::none, Example::bytes, Example::floats}) {
        const Example e(n, k, bits, block, zeros);
        const std::vector<float> a = numbers(m * k), bias = zeros == Example::none ? numbers(n) : std::vector<float>();
        for (int digits : {1, 2, 3}) {
          const std::vector<float> y = product(*GetParam(), e, digits, m, a, bias);
          for (int64_t i = 0; i < m * n; ++i) {
            double sum = bias.empty() ? 0 : static_cast<double>(bias[static_cast<size_t>(i % n)]), size = std::abs(sum);
            for (int64_t p = 0; p < k; ++p) {
              const double term = static_cast<double>(a[static_cast<size_t>(i / n * k + p)]) * e.weight(i % n, p);
              sum += term;
              size += std::abs(term) + (zeros == Example::floats ? 0.1 : 0.0);
            }
            ASSERT_NEAR(static_cast<double>(y[static_cast<size_t>(i)]), sum, tolerances[digits - 1] * size)
                << m << " " << n << " " << k << " " << bits << " bits, " << digits << " digits at " << i;
          }
        }
      }
    }
  }
}

TEST_P(GemmNbits, HasTheBitsOfThePortableOne) {
  for (int bits : {2, 4, 8}) {
    for (Example::Zeros zeros : {Example::bytes, Example::floats}) {
      const Example e(43, 200, bits, 32, zeros);
      const std::vector<float> bias = numbers(e.n);
      for (int64_t m : {7, 31}) {
        const std::vector<float> a = numbers(m * e.k);
        for (int digits : {1, 2, 3})
          EXPECT_EQ(product(*GetParam(), e, digits, m, a, bias),
                    product(nbits_kernels_portable, e, digits, m, a, bias));
      }
    }
  }
}

// The largest sums of a run, where one that is too large would show.
TEST_P(GemmNbits, ExtremesDoNotOverflow) {
  Example e(8, 128, 8, 128, Example::bytes);
  e.codes.assign(e.codes.size(), 255);
  e.byte_zeros.assign(e.byte_zeros.size(), 0);
  e.scales.assign(e.scales.size(), 1);
  for (float x : {-1.0f, 1.0f}) {
    for (float y : product(*GetParam(), e, 3, 1, std::vector<float>(128, x), {})) EXPECT_EQ(y, 128 * 255 * x);
  }
}

TEST_P(GemmNbits, RowsThatAreNotFiniteBecomeNan) {
  const Example e(8, 64, 4, 32, Example::none);
  for (float bad : {std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN()}) {
    std::vector<float> a = numbers(2 * e.k);
    a[70] = bad;
    const std::vector<float> y = product(*GetParam(), e, 3, 2, a, {});
    for (size_t i = 0; i < y.size(); ++i) EXPECT_EQ(std::isnan(y[i]), i >= 8);
  }
}

TEST_P(GemmNbits, ZerosAndTinyNumbers) {
  const Example e(8, 32, 4, 32, Example::none);
  for (float x : {0.0f, 1e-44f})
    for (float y : product(*GetParam(), e, 3, 1, std::vector<float>(32, x), {})) EXPECT_EQ(y, 0);
}

INSTANTIATE_TEST_SUITE_P(Kernels, GemmNbits, testing::ValuesIn(available_nbits_kernels()),
                         [](const auto& kernels) { return std::string(kernels.param->name); });

TEST(GemmNbitsDispatch, FollowsTheIsa) {
  const ScopedIsa forced(Isa::portable);
  EXPECT_STREQ(nbits_kernels().name, "portable");
}

}  // namespace
}  // namespace tenon::kernels

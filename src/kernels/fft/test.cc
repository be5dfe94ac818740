#include <gtest/gtest.h>

#include <cmath>
#include <complex>
#include <numbers>
#include <vector>

#include "kernels/fft/fft.h"

namespace tenon::kernels {
namespace {

class FftTest : public testing::TestWithParam<Isa> {};

// One output of the definition.
template <typename T>
std::complex<double> expected(const std::vector<T>& real, const std::vector<T>& imaginary, int64_t k) {
  const auto n = static_cast<int64_t>(real.size());
  std::complex<double> sum;
  for (int64_t j = 0; j < n; ++j) {
    const auto at = static_cast<size_t>(j);
    const double angle = -2 * std::numbers::pi * static_cast<double>(j * k % n) / static_cast<double>(n);
    sum += std::complex<double>(real[at], imaginary[at]) * std::polar(1.0, angle);
  }
  return sum;
}

template <typename T>
void expect_transform(int64_t n, double tolerance) {
  std::vector<T> x_real(static_cast<size_t>(n)), x_imaginary(x_real.size());
  for (size_t i = 0; i < x_real.size(); ++i) {
    x_real[i] = static_cast<T>(std::sin(1.7 * static_cast<double>(i)));
    x_imaginary[i] = static_cast<T>(std::cos(0.3 * static_cast<double>(i * i % 97)));
  }
  const Fft<T> fft(n);
  std::vector<T> real = x_real, imaginary = x_imaginary, work(static_cast<size_t>(fft.work_size()));
  fft.transform(real.data(), imaginary.data(), work.data());
  for (int64_t k = 0; k < n; k += 1 + n / 64) {
    const auto at = static_cast<size_t>(k);
    const std::complex<double> wanted = expected(x_real, x_imaginary, k);
    const double allowed = tolerance * (std::sqrt(static_cast<double>(n)) + std::abs(wanted));
    ASSERT_NEAR(real[at], wanted.real(), allowed) << "length " << n << ", number " << k;
    ASSERT_NEAR(imaginary[at], wanted.imag(), allowed) << "length " << n << ", number " << k;
  }
  fft.transform(imaginary.data(), real.data(), work.data());
  for (size_t i = 0; i < x_real.size(); ++i) {
    ASSERT_NEAR(real[i] / static_cast<T>(n), x_real[i], tolerance) << "length " << n << ", number " << i;
    ASSERT_NEAR(imaginary[i] / static_cast<T>(n), x_imaginary[i], tolerance) << "length " << n << ", number " << i;
  }
}

TEST_P(FftTest, MatchesTheDefinition) {
  const ScopedIsa forced(GetParam());
  ASSERT_EQ(fft_isa(), GetParam());
  for (int64_t n = 1; n <= 70; ++n) {
    expect_transform<float>(n, 1e-5);
    expect_transform<double>(n, 1e-13);
  }
  for (int64_t n : {128, 400, 1001, 1024, 2 * 3 * 5 * 7 * 11 * 13, 1009, 4099, 65536, 100003}) {
    expect_transform<float>(n, 2e-5);
    expect_transform<double>(n, 1e-12);
  }
}

INSTANTIATE_TEST_SUITE_P(Isas, FftTest, testing::ValuesIn(available_isas(cpu_features())),
                         [](const auto& isa) { return std::string(isa_name(isa.param)); });

}  // namespace
}  // namespace tenon::kernels

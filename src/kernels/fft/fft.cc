#include "kernels/fft/fft.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace tenon::kernels {
namespace {

void run_stage(const FftStage<float>& stage, const float* x_real, const float* x_imaginary, float* y_real,
               float* y_imaginary) {
  fft_kernels().float_stage(stage, x_real, x_imaginary, y_real, y_imaginary);
}

void run_stage(const FftStage<double>& stage, const double* x_real, const double* x_imaginary, double* y_real,
               double* y_imaginary) {
  fft_kernels().double_stage(stage, x_real, x_imaginary, y_real, y_imaginary);
}

// The length as a product of radices, empty if it has a larger prime factor.
std::vector<int> radices_of(int64_t length) {
  std::vector<int> radices;
  for (int radix : {13, 11, 7, 5, 4, 3, 2}) {
    for (; length % radix == 0; length /= radix) radices.push_back(radix);
  }
  if (length != 1) radices.clear();
  return radices;
}

int64_t padded_length(int64_t length) {
  int64_t padded = 1;
  while (padded < 2 * length - 1) padded *= 2;
  return padded;
}

}  // namespace

Isa fft_isa() { return fft_kernels().isa; }

template <typename T>
Fft<T>::Fft(int64_t length) : length_(length) {
  const std::vector<int> radices = radices_of(length);
  if (length > 1 && radices.empty()) {
    padded_ = padded_length(length);
    plan_stages(radices_of(padded_));
    plan_chirp();
  } else {
    plan_stages(radices);
  }
}

template <typename T>
int64_t Fft<T>::work_size() const {
  return padded_ > 0 ? 4 * padded_ : 2 * length_;
}

template <typename T>
int64_t Fft<T>::table_size(int64_t length) {
  // The passes before the last have at most half as many twiddles each, and two T make one.
  constexpr int64_t roots = 1024;
  if (length <= 1 || !radices_of(length).empty()) return 4 * length + roots;
  return 8 * padded_length(length) + 2 * length + roots;  // two of them for the spectrum, two while it is made
}

template <typename T>
void Fft<T>::plan_stages(const std::vector<int>& radices) {
  int64_t rest = padded_ > 0 ? padded_ : length_, stride = 1;
  auto push_root = [&](int64_t numerator, int64_t denominator, bool imaginary) {
    const double angle = -2 * std::numbers::pi * static_cast<double>(numerator) / static_cast<double>(denominator);
    tables_.push_back(static_cast<T>(imaginary ? std::sin(angle) : std::cos(angle)));
  };
  for (int radix : radices) {
    const int64_t count = rest / radix;
    Stage stage{radix, count, stride, tables_.size(), 0};
    for (int64_t p = 0; p < count; ++p) {
      for (bool imaginary : {false, true}) {
        for (int k = 1; k < radix; ++k) push_root(p * k, rest, imaginary);
      }
    }
    stage.roots = tables_.size();
    for (bool imaginary : {false, true}) {
      for (int k = 0; k < radix; ++k) push_root(k, radix, imaginary);
    }
    stages_.push_back(stage);
    rest = count;
    stride *= radix;
  }
}

template <typename T>
void Fft<T>::plan_chirp() {
  const auto n = static_cast<size_t>(length_), padded = static_cast<size_t>(padded_);
  chirp_.resize(2 * n);
  chirp_spectrum_.assign(2 * padded, T(0));
  T *real = chirp_spectrum_.data(), *imaginary = real + padded;
  int64_t square = 0;  // k^2 modulo 2 n, so that large angles stay exact
  for (size_t k = 0; k < n; ++k) {
    const double angle = std::numbers::pi * static_cast<double>(square) / static_cast<double>(length_);
    chirp_[k] = static_cast<T>(std::cos(angle));
    chirp_[n + k] = static_cast<T>(-std::sin(angle));
    const size_t mirrored = k == 0 ? 0 : padded - k;
    real[k] = real[mirrored] = static_cast<T>(std::cos(angle) / static_cast<double>(padded_));
    imaginary[k] = imaginary[mirrored] = static_cast<T>(std::sin(angle) / static_cast<double>(padded_));
    square = (square + 2 * static_cast<int64_t>(k) + 1) % (2 * length_);
  }
  std::vector<T> work(2 * padded);
  run_stages(real, imaginary, work.data());
}

template <typename T>
void Fft<T>::transform(T* real, T* imaginary, T* work) const {
  if (padded_ > 0) {
    convolve_with_chirp(real, imaginary, work);
  } else {
    run_stages(real, imaginary, work);
  }
}

// Passes go back and forth between the numbers and the working memory.
template <typename T>
void Fft<T>::run_stages(T* real, T* imaginary, T* work) const {
  const int64_t n = padded_ > 0 ? padded_ : length_;
  T *from_real = real, *from_imaginary = imaginary, *to_real = work, *to_imaginary = work + n;
  for (const Stage& stage : stages_) {
    const FftStage<T> call{stage.radix, stage.count, stage.stride, tables_.data() + stage.twiddles,
                           tables_.data() + stage.roots};
    run_stage(call, from_real, from_imaginary, to_real, to_imaginary);
    std::swap(from_real, to_real);
    std::swap(from_imaginary, to_imaginary);
  }
  if (from_real == real) return;
  std::copy_n(from_real, n, real);
  std::copy_n(from_imaginary, n, imaginary);
}

// With j k = (j^2 + k^2 - (k - j)^2) / 2 the transform is a convolution of x * chirp with the conjugate chirp.
template <typename T>
void Fft<T>::convolve_with_chirp(T* real, T* imaginary, T* work) const {
  T *a_real = work, *a_imaginary = work + padded_, *rest = work + 2 * padded_;
  const T *chirp_real = chirp_.data(), *chirp_imaginary = chirp_real + length_;
  for (int64_t k = 0; k < length_; ++k) {
    a_real[k] = real[k] * chirp_real[k] - imaginary[k] * chirp_imaginary[k];
    a_imaginary[k] = real[k] * chirp_imaginary[k] + imaginary[k] * chirp_real[k];
  }
  std::fill(a_real + length_, a_real + padded_, T(0));
  std::fill(a_imaginary + length_, a_imaginary + padded_, T(0));
  run_stages(a_real, a_imaginary, rest);
  const T *b_real = chirp_spectrum_.data(), *b_imaginary = b_real + padded_;
  for (int64_t k = 0; k < padded_; ++k) {
    const T product = a_real[k] * b_real[k] - a_imaginary[k] * b_imaginary[k];
    a_imaginary[k] = a_real[k] * b_imaginary[k] + a_imaginary[k] * b_real[k];
    a_real[k] = product;
  }
  run_stages(a_imaginary, a_real, rest);
  for (int64_t k = 0; k < length_; ++k) {
    real[k] = a_real[k] * chirp_real[k] - a_imaginary[k] * chirp_imaginary[k];
    imaginary[k] = a_real[k] * chirp_imaginary[k] + a_imaginary[k] * chirp_real[k];
  }
}

template class Fft<float>;
template class Fft<double>;

}  // namespace tenon::kernels

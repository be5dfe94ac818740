// One pass of a Fourier transform. The loops over interleaved sequences are left to the compiler to vectorise.
#pragma once

#include "base/independent_loop.h"
#include "kernels/fft/fft.h"

namespace tenon::kernels {
namespace {

template <typename T>
struct ComplexNumber {
  T real, imaginary;

  friend ComplexNumber operator+(ComplexNumber a, ComplexNumber b) {
    return {a.real + b.real, a.imaginary + b.imaginary};
  }
  friend ComplexNumber operator-(ComplexNumber a, ComplexNumber b) {
    return {a.real - b.real, a.imaginary - b.imaginary};
  }
  friend ComplexNumber operator*(ComplexNumber a, ComplexNumber b) {
    return {a.real * b.real - a.imaginary * b.imaginary, a.real * b.imaginary + a.imaginary * b.real};
  }
  ComplexNumber times_minus_i() const { return {imaginary, -real}; }
};

template <typename Arch>
class FftStageKernel {
 public:
  template <typename T>
  static void run(const FftStage<T>& stage, const T* x_real, const T* x_imaginary, T* y_real, T* y_imaginary) {
    switch (stage.radix) {
      case 2:
        return passes<2>(stage, x_real, x_imaginary, y_real, y_imaginary);
      case 3:
        return passes<3>(stage, x_real, x_imaginary, y_real, y_imaginary);
      case 4:
        return passes<4>(stage, x_real, x_imaginary, y_real, y_imaginary);
      case 5:
        return passes<5>(stage, x_real, x_imaginary, y_real, y_imaginary);
      case 7:
        return passes<7>(stage, x_real, x_imaginary, y_real, y_imaginary);
      case 11:
        return passes<11>(stage, x_real, x_imaginary, y_real, y_imaginary);
      default:
        return passes<13>(stage, x_real, x_imaginary, y_real, y_imaginary);
    }
  }

  static constexpr FftKernels table() { return {Arch::isa, run<float>, run<double>}; }

 private:
  template <int radix, typename T>
  static void passes(const FftStage<T>& stage, const T* x_real, const T* x_imaginary, T* y_real, T* y_imaginary) {
    const int64_t stride = stage.stride, step = stage.count * stride;
    T roots[2 * radix];
    for (int k = 0; k < 2 * radix; ++k) roots[k] = stage.roots[k];
    for (int64_t p = 0; p < stage.count; ++p) {
      T twiddle[2 * radix - 2];
      for (int k = 0; k < 2 * radix - 2; ++k) twiddle[k] = stage.twiddles[p * (2 * radix - 2) + k];
      const T *from_real = x_real + p * stride, *from_imaginary = x_imaginary + p * stride;
      T *to_real = y_real + p * radix * stride, *to_imaginary = y_imaginary + p * radix * stride;
      TENON_INDEPENDENT_LOOP
      for (int64_t q = 0; q < stride; ++q) {
        ComplexNumber<T> x[radix], y[radix];
        for (int k = 0; k < radix; ++k) x[k] = {from_real[q + k * step], from_imaginary[q + k * step]};
        butterfly<radix>(x, y, roots);
        to_real[q] = y[0].real;
        to_imaginary[q] = y[0].imaginary;
        for (int k = 1; k < radix; ++k) {
          const ComplexNumber<T> turned = y[k] * ComplexNumber<T>{twiddle[k - 1], twiddle[radix + k - 2]};
          to_real[q + k * stride] = turned.real;
          to_imaginary[q + k * stride] = turned.imaginary;
        }
      }
    }
  }

  // The transform of `radix` numbers.
  template <int radix, typename T>
  static void butterfly(const ComplexNumber<T>* x, ComplexNumber<T>* y, const T* roots) {
    if constexpr (radix == 2) {
      y[0] = x[0] + x[1];
      y[1] = x[0] - x[1];
    } else if constexpr (radix == 4) {
      const ComplexNumber<T> even = x[0] + x[2], odd = x[1] + x[3];
      const ComplexNumber<T> difference = x[0] - x[2], turned = (x[1] - x[3]).times_minus_i();
      y[0] = even + odd;
      y[1] = difference + turned;
      y[2] = even - odd;
      y[3] = difference - turned;
    } else {
      // x[j] and x[radix - j] have conjugate factors, so their sum and difference have real ones.
      constexpr int half = radix / 2;
      ComplexNumber<T> sum[half], difference[half];
      y[0] = x[0];
      for (int j = 0; j < half; ++j) {
        sum[j] = x[j + 1] + x[radix - 1 - j];
        difference[j] = (x[j + 1] - x[radix - 1 - j]).times_minus_i();
        y[0] = y[0] + sum[j];
      }
      for (int k = 1; k <= half; ++k) {
        ComplexNumber<T> same = x[0], opposite = {T(0), T(0)};
        for (int j = 0; j < half; ++j) {
          const T cosine = roots[(j + 1) * k % radix], sine = -roots[radix + (j + 1) * k % radix];
          same = {same.real + cosine * sum[j].real, same.imaginary + cosine * sum[j].imaginary};
          opposite = {opposite.real + sine * difference[j].real, opposite.imaginary + sine * difference[j].imaginary};
        }
        y[k] = same + opposite;
        y[radix - k] = same - opposite;
      }
    }
  }
};

}  // namespace
}  // namespace tenon::kernels

// Discrete Fourier transforms of any length in O(n log n).
#pragma once

#include <cstdint>
#include <vector>

#include "kernels/dispatch.h"

namespace tenon::kernels {

// The instruction set these functions use now.
Isa fft_isa();

// One pass of a transform: `count` butterflies of `radix` numbers each, on `stride` interleaved sequences.
// Element k of butterfly p is at (p + k * count) * stride before it and at (p * radix + k) * stride after it.
template <typename T>
struct FftStage {
  int radix;
  int64_t count, stride;
  const T* twiddles;  // for each p: radix - 1 real parts, then as many imaginary ones
  const T* roots;     // for radices without a butterfly of their own: cos, then -sin, of 2 pi k / radix
};

// Everything that transforms of one length share. Made once; any number of threads may use it.
//
// Lengths whose prime factors are at most 13 are transformed by passes of these radices (Stockham's order, which needs
// no bit reversal); others as a convolution with a chirp, which is done by transforms of a power of two (Bluestein).
template <typename T>
class Fft {
 public:
  // `length` is at least 1.
  explicit Fft(int64_t length);

  int64_t length() const { return length_; }
  // How many T `transform` needs as working memory.
  int64_t work_size() const;
  // How many T the tables of a plan for this length have, at most.
  static int64_t table_size(int64_t length);

  // Replaces the complex numbers x by y[k] = sum of x[j] * exp(-2 pi i j k / length). With `real` and `imaginary`
  // exchanged it is the inverse transform, but for the division by the length.
  void transform(T* real, T* imaginary, T* work) const;

 private:
  void plan_stages(const std::vector<int>& radices);
  void plan_chirp();
  void run_stages(T* real, T* imaginary, T* work) const;
  void convolve_with_chirp(T* real, T* imaginary, T* work) const;

  int64_t length_;
  int64_t padded_ = 0;  // the length of the convolution, 0 without one
  struct Stage {
    int radix;
    int64_t count, stride;
    size_t twiddles, roots;  // where they start in tables_
  };
  std::vector<Stage> stages_;  // of length_, or of padded_
  std::vector<T> tables_;
  std::vector<T> chirp_;           // exp(-pi i k^2 / length): length_ real parts, then imaginary ones
  std::vector<T> chirp_spectrum_;  // the transform of its conjugate, divided by padded_
};

extern template class Fft<float>;
extern template class Fft<double>;

struct FftKernels {
  Isa isa;
  void (*float_stage)(const FftStage<float>& stage, const float* x_real, const float* x_imaginary, float* y_real,
                      float* y_imaginary);
  void (*double_stage)(const FftStage<double>& stage, const double* x_real, const double* x_imaginary, double* y_real,
                       double* y_imaginary);
};

TENON_ISA_TABLES(FftKernels, fft_kernels)

}  // namespace tenon::kernels

// Softmax of codes, which are codes again.
#pragma once

#include <array>
#include <cstdint>

namespace tenon::kernels {

// y[i] = round(exp(x[i] * scale) / the sum of all those / y_scale) + zero, saturated. It depends on differences of
// codes alone, of which there are 256.
class SoftmaxOfCodes {
 public:
  explicit SoftmaxOfCodes(float scale);
  // `numbers` is working memory for n floats. Single-threaded: callers split the rows.
  void row(const uint8_t* x, int64_t n, float y_scale, uint8_t zero, uint8_t* y, float* numbers) const;
  void row(const int8_t* x, int64_t n, float y_scale, int8_t zero, int8_t* y, float* numbers) const;

 private:
  template <class T>
  void run(const T* x, int64_t n, float y_scale, T zero, T* y, float* numbers) const;

  std::array<float, 256> powers_;  // exp((i - 255) * scale)
};

}  // namespace tenon::kernels

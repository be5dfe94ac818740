#include "kernels/quantize/softmax_codes.h"

#include <algorithm>
#include <cmath>

#include "kernels/quantize/requantize.h"

namespace tenon::kernels {

namespace {

// In lanes that are compared at once.
template <class T>
T highest_of(const T* x, int64_t n) {
  constexpr int width = 16;
  T lanes[width];
  std::fill_n(lanes, width, x[0]);
  int64_t i = 0;
  for (; i + width <= n; i += width) {
    for (int k = 0; k < width; ++k) lanes[k] = lanes[k] > x[i + k] ? lanes[k] : x[i + k];
  }
  for (; i < n; ++i) lanes[0] = std::max(lanes[0], x[i]);
  return *std::max_element(lanes, lanes + width);
}

}  // namespace

SoftmaxOfCodes::SoftmaxOfCodes(float scale) {
  for (int i = 0; i < 256; ++i)
    powers_[static_cast<size_t>(i)] = static_cast<float>(std::exp((i - 255) * static_cast<double>(scale)));
}

template <class T>
void SoftmaxOfCodes::run(const T* x, int64_t n, float y_scale, T zero, T* y, float* numbers) const {
  if (n == 0) return;
  const float* powers = powers_.data() + 255 - highest_of(x, n);
  // Sums that do not wait for each other.
  constexpr int at_once = 4;
  float sums[at_once] = {};
  int64_t i = 0;
  for (; i + at_once <= n; i += at_once) {
    for (int k = 0; k < at_once; ++k) sums[k] += numbers[i + k] = powers[x[i + k]];
  }
  for (; i < n; ++i) sums[0] += numbers[i] = powers[x[i]];
  const float factor = 1 / ((sums[0] + sums[1] + sums[2] + sums[3]) * y_scale);
  requantize(numbers, 0, {&factor, 0}, zero, y, n);
}

void SoftmaxOfCodes::row(const uint8_t* x, int64_t n, float y_scale, uint8_t zero, uint8_t* y, float* numbers) const {
  run(x, n, y_scale, zero, y, numbers);
}
void SoftmaxOfCodes::row(const int8_t* x, int64_t n, float y_scale, int8_t zero, int8_t* y, float* numbers) const {
  run(x, n, y_scale, zero, y, numbers);
}

}  // namespace tenon::kernels

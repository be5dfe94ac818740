// Functions of half precision floats as tables: there are but 65536 of these.
#pragma once

#include <cstdint>
#include <cstring>
#include <vector>

#include "kernels/half/half.h"

namespace tenon::kernels {

// What a function makes of every half precision float.
class HalfTable {
 public:
  explicit HalfTable(void (*function)(const float* x, float* y, int64_t n)) : results_(count) {
    std::vector<float> values(count);
    for (size_t i = 0; i < count; ++i) results_[i] = static_cast<uint16_t>(i);
    f16_to_f32(results_.data(), values.data(), count);
    function(values.data(), values.data(), count);
    f32_to_f16(values.data(), results_.data(), count);
  }

  // y[i] = function(x[i]); y may be x.
  void apply(const uint16_t* x, uint16_t* y, int64_t n) const {
    constexpr int64_t at_once = 8;
    const uint16_t* results = results_.data();
    int64_t i = 0;
    for (; i + at_once <= n; i += at_once) {
      uint16_t found[at_once];
#pragma GCC unroll 8
      for (int64_t k = 0; k < at_once; ++k) found[k] = results[x[i + k]];
      std::memcpy(y + i, found, sizeof found);
    }
    for (; i < n; ++i) y[i] = results[x[i]];
  }

 private:
  static constexpr size_t count = 1 << 16;
  std::vector<uint16_t> results_;
};

}  // namespace tenon::kernels

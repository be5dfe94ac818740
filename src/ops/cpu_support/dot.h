#pragma once

#include <cstdint>

namespace tenon::ops {

// The sum of products, collected as Sum. Several lanes do not wait for each other, and keep rounding errors small.
template <typename Sum, typename T>
Sum dot(const T* x, const T* y, int64_t n) {
  constexpr int64_t lane_count = 16;
  Sum lanes[lane_count] = {};
  int64_t i = 0;
  for (; i + lane_count <= n; i += lane_count) {
    for (int64_t lane = 0; lane < lane_count; ++lane) lanes[lane] += x[i + lane] * y[i + lane];
  }
  for (; i < n; ++i) lanes[i % lane_count] += x[i] * y[i];
  Sum sum{};
  for (Sum lane : lanes) sum += lane;
  return sum;
}

}  // namespace tenon::ops

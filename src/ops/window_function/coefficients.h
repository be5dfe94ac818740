#pragma once

namespace tenon::ops {

// A window is constant - first * cos(t) + second * cos(2t), where t goes once around the circle over it.
struct WindowCoefficients {
  const char* op;
  double constant, first, second;
};

inline constexpr WindowCoefficients windows[] = {
    {"HannWindow", 0.5, 0.5, 0},
    {"HammingWindow", 25.0 / 46, 21.0 / 46, 0},
    {"BlackmanWindow", 0.42, 0.5, 0.08},
};

}  // namespace tenon::ops

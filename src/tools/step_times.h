#pragma once

#include <cstdint>
#include <vector>

#include "tenon/session.h"

namespace tenon::tools {

// What is left of a step without the steps in its bodies.
struct OwnTime {
  int64_t nanoseconds = 0;
  bool has_inner = false;
};

// Of each step of a run.
std::vector<OwnTime> own_times(const std::vector<StepProfile>& steps);

}  // namespace tenon::tools

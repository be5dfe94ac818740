#pragma once

#include <string>

namespace tenon::tools {

// The most that the machine was seen to do with so many threads.
struct Peaks {
  int threads = 0;
  double gflops = 0;    // float32, as Tenon's own matrix product
  double copy_gbs = 0;  // bytes read and written by copying blocks that fit in no cache
};

Peaks measure_peaks(int threads);

}  // namespace tenon::tools

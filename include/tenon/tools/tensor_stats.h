#pragma once

#include <cstdint>
#include <string>

#include "tenon/tensor.h"

namespace tenon::tools {

// What is in a tensor, at a glance. Complex numbers count by their magnitude; strings are only counted.
struct TensorStats {
  int64_t elements = 0, nans = 0, infinities = 0, zeros = 0;
  // Of the finite numbers; 0 where there are none.
  int64_t finite_numbers = 0;
  double min = 0, max = 0, mean = 0, std = 0;

  bool finite() const { return nans == 0 && infinities == 0; }
};

TensorStats tensor_stats(const Tensor& tensor);

// Counts of NaN and infinite elements alone, which takes a fraction of the time.
struct NotFinite {
  int64_t nans = 0, infinities = 0;
};
NotFinite count_not_finite(const Tensor& tensor);

// "min -1, max 2.5, mean 0.31, std 0.2, 3 zeros, 1 NaN, 2 infinite": what there is none of is left out.
std::string to_text(const TensorStats& stats);

}  // namespace tenon::tools

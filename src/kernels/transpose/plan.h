// A permutation in its simplest form.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace tenon::kernels {

// Axes of size 1 are gone, axes that stay neighbours are merged, and an innermost axis that stays innermost becomes
// part of the element where the element is then no larger than 16 bytes.
struct TransposePlan {
  TransposePlan(std::span<const int64_t> dims, std::span<const int64_t> permutation, size_t bytes);

  struct Axis {
    int64_t size;
    int64_t from_stride;  // in elements
    int64_t to_stride;
  };
  std::vector<Axis> axes;  // in the order of the output; empty for a plain copy of one element
  size_t element_bytes;
};

}  // namespace tenon::kernels

// Conversion between element types, as Cast defines it.
#pragma once

#include <string>

#include "base/thread_pool.h"
#include "tenon/tensor.h"

namespace tenon::ops {

struct ConvertOptions {
  bool saturate = true;           // to float8: beyond the largest finite value becomes it
  std::string round_mode = "up";  // to float8e8m0: up, down or nearest
};

// A copy of `from` in another element type. Integers wrap around; floats to integers truncate, to those
// below 8 bits they round to the nearest, ties to even.
Tensor convert(const Tensor& from, ElementType to, Allocator& allocator = system_allocator());
// The same into memory that is there, which has as many elements.
void convert_into(const Tensor& from, Tensor& to, ThreadPool& threads, const ConvertOptions& options = {});

}  // namespace tenon::ops

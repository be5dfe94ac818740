// Which of several ways to do the same is the fastest.
#pragma once

#include <cstddef>

#include "base/function_ref.h"
#include "cuda/gpu.h"

namespace tenon::cuda {

// Runs each of `count` ways a few times. The first one wins unless another is clearly faster: the clock is not exact.
// With TENON_TRIAL=first or last in the environment that one wins, and nothing is tried.
size_t fastest(GpuQueue& queue, size_t count, FunctionRef<void(size_t)> run);

// The same, once for each key while somebody holds the result.
std::shared_ptr<const size_t> fastest(GpuQueue& queue, const std::string& key, size_t count,
                                      FunctionRef<void(size_t)> run);

}  // namespace tenon::cuda

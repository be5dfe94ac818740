// Which of several ways to do the same is the fastest.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/function_ref.h"
#include "cuda/gpu.h"

namespace tenon::cuda {

// Runs each of `count` ways a few times. The first one wins unless another is clearly faster: the clock is not exact.
// With TENON_TRIAL=first or last in the environment that one wins, and nothing is tried.
size_t fastest(GpuQueue& queue, size_t count, FunctionRef<void(size_t)> run);

// How often what is chosen will be used.
enum class Uses : uint8_t { in_one_run, in_many_runs };

// Whether it is: for one run it is not, unless it comes often.
bool is_worth_a_trial(Gpu& gpu, const std::string& key, Uses uses);
// Which way is taken where it is not.
size_t untried_way(size_t count);

// The fastest, or what is taken untried. A trial is made once for each key, while its result is known.
std::shared_ptr<const size_t> fastest(GpuQueue& queue, const std::string& key, Uses uses, size_t count,
                                      FunctionRef<void(size_t)> run);

}  // namespace tenon::cuda

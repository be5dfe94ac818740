#pragma once

#include <span>

#include "base/thread_pool.h"
#include "tenon/tensor.h"

namespace tenon::ops {

// Axis i of `y` is axis order[i] of `x`, whatever shape `y` has: it only needs as many elements. Whole-byte types and
// strings.
void permute(ThreadPool& threads, const Tensor& x, std::span<const int64_t> order, Tensor& y);

}  // namespace tenon::ops

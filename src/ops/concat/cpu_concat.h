#pragma once

#include <span>

#include "base/thread_pool.h"
#include "tenon/tensor.h"

namespace tenon::ops {

// Writes the parts one after the other along `axis` of `to`, whose other sizes are theirs.
void concat(ThreadPool& threads, std::span<const Tensor* const> parts, int axis, Tensor& to);

}  // namespace tenon::ops

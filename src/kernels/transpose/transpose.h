// Permutes the axes of an array.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/thread_pool.h"

namespace tenon::kernels {

// Axis i of `to` is axis permutation[i] of `from`, whose sizes are `dims`; both are dense and do not overlap.
// `permutation` is one of 0 … dims.size() - 1. Elements are any number of bytes.
void transpose(ThreadPool& pool, const void* from, void* to, std::span<const int64_t> dims,
               std::span<const int64_t> permutation, size_t element_bytes);

}  // namespace tenon::kernels

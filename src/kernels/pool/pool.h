// Max and average pooling of one to three spatial dimensions, channels first.
#pragma once

#include <cstdint>

#include "base/thread_pool.h"

namespace tenon::kernels {

// Spatial arrays are depth, height, width; dimensions that an image lacks stay at their defaults.
// Output index o covers input indices o * stride - pad_begin + i * dilation for i < kernel that lie inside the input.
struct PoolShape {
  int64_t planes = 1;  // batch times channels
  int64_t input[3] = {1, 1, 1};
  int64_t output[3] = {1, 1, 1};
  int64_t kernel[3] = {1, 1, 1};
  int64_t stride[3] = {1, 1, 1};
  int64_t dilation[3] = {1, 1, 1};
  int64_t pad_begin[3] = {0, 0, 0};
  int64_t pad_end[3] = {0, 0, 0};  // matters only for an average that counts padding

  int64_t input_size() const { return input[0] * input[1] * input[2]; }
  int64_t output_size() const { return output[0] * output[1] * output[2]; }
};

// T is float, double, int8_t or uint8_t. NaN wins. A window outside the input gives the lowest value of T.
template <class T>
void max_pool(ThreadPool& pool, const PoolShape& shape, const T* x, T* y);

enum class IndexOrder { row_major, column_major };

// Also stores where each maximum (the first of equals) was: its index in the whole input, planes outermost, each plane
// numbered in the given order. -1 for a window outside the input.
template <class T>
void max_pool_with_indices(ThreadPool& pool, const PoolShape& shape, const T* x, T* y, int64_t* indices,
                           IndexOrder order);

// T is float or double. The divisor counts the covered input elements, with `count_padding` also those in the padding.
template <class T>
void average_pool(ThreadPool& pool, const PoolShape& shape, const T* x, T* y, bool count_padding);

}  // namespace tenon::kernels

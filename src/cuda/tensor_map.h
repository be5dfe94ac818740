// What the GPU's copy engine must know of a tensor to fetch boxes of it. For GPUs of compute capability 9.0.
#pragma once

#include <span>

#include "cuda/gpu.h"

namespace tenon::cuda {

// A kernel's argument, by value.
struct alignas(64) TensorMap {
  uint64_t words[16];
};

// Of elements of 16 bits in memory, the last axis first: `sizes` of the tensor, whose elements lie side by side, and of
// `box`, up to 256 each. Rows of the tensor and its address are multiples of 16 bytes. What of a box is outside of the
// tensor is zeros. Where `mixed`, rows of the box are 128 bytes, and 16 of them at a time are in places that differ
// from row to row, as products by groups of warps want them.
TensorMap tensor_map(const Gpu& gpu, const void* address, std::span<const int64_t> sizes, std::span<const int64_t> box,
                     bool mixed);
// The same for a tensor whose rows, and what follows, are `steps` elements apart: one for each axis but the first.
TensorMap tensor_map(const Gpu& gpu, const void* address, std::span<const int64_t> sizes,
                     std::span<const int64_t> steps, std::span<const int64_t> box, bool mixed);

// How windows lie over images: across, down.
struct Windows {
  int64_t kernel[2], strides[2], dilations[2], pads_begin[2], pads_end[2];
};

// Of images of 16 bits, as sizes {channels, width, height, images}: boxes of one element of as many windows as
// `windows_of_box`, in the order that a convolution has its results, and of 64 channels in mixed places, as above.
TensorMap window_map(const Gpu& gpu, const void* address, std::span<const int64_t, 4> sizes, const Windows& windows,
                     int64_t windows_of_box);

}  // namespace tenon::cuda

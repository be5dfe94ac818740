// Moving boxes of elements, for operators that rearrange data.
#pragma once

#include <cstdint>
#include <span>

#include "base/thread_pool.h"
#include "tenon/tensor.h"

namespace tenon::ops {

// Strides of a dense tensor of this shape, in elements.
SmallVector<int64_t, 6> dense_strides(const Shape& shape);

// Copies a box of `sizes` elements. `from` and `to` point to its first element; strides are in elements, one per axis
// of the box: any in the source (0 repeats), disjoint places in the target. Types below 8 bits are not among them.
void strided_copy(ThreadPool& threads, ElementType type, const void* from, std::span<const int64_t> from_strides,
                  void* to, std::span<const int64_t> to_strides, std::span<const int64_t> sizes);

// `count` elements in a row; strings by assignment.
void copy_elements(ElementType type, const void* from, int64_t from_index, void* to, int64_t to_index, int64_t count);

// Fills `to` with the one element of `value`. All types.
void fill(ThreadPool& threads, const Tensor& value, Tensor& to);

// The address of an element of a whole-byte type.
const void* element_at(const Tensor& tensor, int64_t index);
void* element_at(Tensor& tensor, int64_t index);

// The codes of a tensor of less than 8 bits per element, one per uint8.
Tensor unpack_codes(const Tensor& packed, Allocator& allocator);
// `codes` into `packed`, which has as many elements.
void pack_codes(const Tensor& codes, Tensor& packed);

}  // namespace tenon::ops

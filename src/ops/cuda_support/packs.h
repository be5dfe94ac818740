// How many elements side by side a thread reads and writes at once.
#pragma once

#include <algorithm>
#include <initializer_list>
#include <string_view>

#include "tenon/tensor.h"

namespace tenon::ops {

// What divides all of these addresses, in bytes: a power of two, at most 16.
inline int64_t alignment_of(std::initializer_list<const void*> addresses) {
  auto bits = uintptr_t{16};
  for (const void* address : addresses) bits |= reinterpret_cast<uintptr_t>(address);
  return static_cast<int64_t>(bits & (~bits + 1));
}

// A power of two that divides `size`, of elements that are at most 16 bytes and as aligned as these addresses.
inline int64_t pack_of(ElementType type, int64_t size, std::initializer_list<const void*> addresses) {
  int64_t pack = std::max<int64_t>(1, alignment_of(addresses) * 8 / bits_of(type));
  while (size % pack != 0) pack /= 2;
  return pack;
}

// The text of a function for kernels that read what may be outside of an image: *from, or zeros where not `is_inside`.
// It reads one or the other place, without a branch, so that several reads are under way at the same time.
inline constexpr std::string_view read_or_zeros = R"cuda(
alignas(16) static const u32 read_zeros[4] = {};
template <typename S> inline S read_or_zeros(const S* from, bool is_inside) {
  return *(is_inside ? from : (const S*)read_zeros);
}
)cuda";

// How many pixels side by side, at most `most`, a thread of a depthwise convolution has: they read the same columns.
// But all of the GPU should have work; `threads` are those that have one each.
inline int64_t pixels_of_thread(int64_t most, int64_t threads, int processors) {
  int64_t pixels = most;
  while (pixels > 1 && threads / pixels < int64_t{processors} * 1024) pixels /= 2;
  return pixels;
}

}  // namespace tenon::ops

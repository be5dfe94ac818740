// How many elements side by side a thread reads and writes at once.
#pragma once

#include <algorithm>
#include <initializer_list>

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

}  // namespace tenon::ops

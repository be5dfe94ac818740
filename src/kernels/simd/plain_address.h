#pragma once

namespace tenon::kernels {

// The same address, of which the compiler does not know that it belongs to an array: it would keep the address of each
// vector in a register, and there are too few.
template <class T>
[[gnu::always_inline]] inline T* plain_address(T* address) {
  asm("" : "+r"(address));
  return address;
}

}  // namespace tenon::kernels

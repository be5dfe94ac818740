// Products of bytes with i8mm: statements that stay in their order, and what they change in its registers. gcc would
// move it to others.
// Internal linkage: it belongs to the files of its instruction set alone.
#pragma once

#include <arm_neon.h>

#include <cstdint>

namespace tenon::kernels {
namespace {

// Only gcc knows the addresses that ldp can have; clang, which lints, adds to a register.
#ifdef __clang__
#define TENON_ADDRESS_OF_TWO "Q"
#else
#define TENON_ADDRESS_OF_TWO "Ump"
#endif

// The place is in the instruction: an addition would take time too.
[[gnu::always_inline]] inline void load_two(int8x16_t& first, int8x16_t& second, const uint8_t* p, int at) {
  asm volatile("ldp %q0, %q1, %2"
               : "=w"(first), "=w"(second)
               : TENON_ADDRESS_OF_TWO(*reinterpret_cast<const int8x16_t*>(p + at)));
}

#undef TENON_ADDRESS_OF_TWO

// Two rows times two columns, eight steps deep.
[[gnu::always_inline]] inline void add_products(int32x4_t& sum, int8x16_t a, int8x16_t b) {
  asm volatile("smmla %0.4s, %1.16b, %2.16b" : "+w"(sum) : "w"(a), "w"(b));
}

}  // namespace
}  // namespace tenon::kernels

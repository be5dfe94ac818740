// Kernels for elements of any type of numbers, also of those that share bytes or that the GPU's language has no type
// for.
#pragma once

#include <fmt/format.h>

#include "ops/cuda_support/loop.h"

namespace tenon::ops {

// What element_text knows: all but text and complex numbers.
inline constexpr TypeSet cuda_elements = types::numbers | types::bools | types::float8s | types::sub_bytes;

// Text that declares `Memory_<name>`, what pointers to elements of this type point to, `Value_<name>`, what they are
// computed in (float for small floats, i8 and u8 for integers below 8 bits), and
//   Value_<name> load_<name>(const Memory_<name>* x, i64 i)
std::string load_text(ElementType type, std::string_view name);

// A loop that writes every element of `y`, be they packed. `body` are statements that set `r`, a Value_y, to element
// `e`; for integers below 8 bits it is an i32, the lowest bits of which are stored. Floats below 16 bits are rounded to
// even; those beyond the largest become it where `saturates`. `pointers` declares those that the body reads,
// `functions` what it calls, and v[0], v[1], … are `numbers`. Run it with the address of y first.
CudaLoop element_loop(KernelRun& run, const Tensor& y, std::string_view pointers, std::string_view body,
                      std::vector<int64_t> numbers, std::string_view functions, bool saturates = true);

// Text that declares times(a, b) for floats and doubles: products that are never fused with a sum.
std::string_view exact_product_text();

// Text that declares `ordered(x)`, integers that are ordered as the numbers are, the 32 lowest bits of them for numbers
// of 32 bits: zeros are equal, NaN is the largest.
std::string_view ordered_text();

// Text that declares `to_int<I>(x)` from floats: towards zero, at the limits where it is beyond them, 0 for NaN. I is
// i32, i64 or u64; below 0, u64 wraps around.
std::string_view to_int_text();

// The type that kernels number so many elements with: "u32" where that is enough, as it is divided faster.
std::string_view index_text(int64_t elements);
// As coordinates_text of loop.h, in that type.
std::string coordinates_in(std::string_view type, int rank, size_t first, std::string_view index = "i");

// The widest unit, in bytes, that pieces of `bytes` at multiples of it from these addresses can be moved in: 16, 8, …,
// 1; and its type.
int64_t unit_for(int64_t bytes, std::initializer_list<const void*> addresses);
std::string_view unit_text(int64_t unit);

}  // namespace tenon::ops

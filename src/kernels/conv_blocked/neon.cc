#include "kernels/simd/neon.h"

#include "kernels/conv_blocked/neon_tile.h"

namespace tenon::kernels {
namespace {

struct Floats {
  using S = kernels::Simd<Neon>;
  using Number = float;
  static constexpr Isa isa = Isa::neon;

  template <class F>
  static void load(F& v, const Number* p) {
    asm volatile("ldr %q0, %1" : "=w"(v) : "m"(*reinterpret_cast<const F*>(p)));
  }
  template <class F>
  static void add_product(F& sum, F a, F b) {
    asm volatile("fmla %0.4s, %1.4s, %2.4s" : "+w"(sum) : "w"(a), "w"(b));
  }
  template <int Lane, class F>
  static void add_product_of_lane(F& sum, F w, F value) {
    asm volatile("fmla %0.4s, %1.4s, %2.s[%3]" : "+w"(sum) : "w"(w), "w"(value), "i"(Lane));
  }
  template <class F>
  static void load_one(F& value, const Number* x, int64_t bytes) {
    asm volatile("ldr %s0, [%1, %2]" : "=w"(value) : "r"(x), "r"(bytes));
  }
  // Into the same register: from step to step, gcc would exchange them.
  template <class F>
  static void load_two(F& value, const Number* x, int64_t bytes) {
    asm volatile("ldr %d0, [%1, %2]" : "+w"(value) : "r"(x), "r"(bytes));
  }
  template <class F>
  static void load_vector(F& value, const Number* x, int64_t bytes) {
    asm volatile("ldr %q0, [%1, %2]" : "+w"(value) : "r"(x), "r"(bytes));
  }
};

}  // namespace

constexpr ConvBlockedKernels conv_blocked_kernels_neon = ConvBlockedTiles<NeonTile<Floats>>::table();

}  // namespace tenon::kernels

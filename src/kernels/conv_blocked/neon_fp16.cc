#include "kernels/simd/neon_fp16.h"

#include "kernels/conv_blocked/neon_tile.h"

namespace tenon::kernels {
namespace {

struct Halves {
  using S = kernels::NeonHalf;
  using Number = uint16_t;
  static constexpr Isa isa = Isa::neon;
  // Sums of so many products are wrong by about one unit in the last place; those of more would be by more.
  static constexpr int64_t most_products = 64;

  template <class F>
  static void load(F& v, const Number* p) {
    asm volatile("ldr %q0, %1" : "=w"(v) : "m"(*reinterpret_cast<const F*>(p)));
  }
  template <class F>
  static void add_product(F& sum, F a, F b) {
    asm volatile("fmla %0.8h, %1.8h, %2.8h" : "+w"(sum) : "w"(a), "w"(b));
  }
  // The register of the lane is one of the first 16.
  template <int Lane, class F>
  static void add_product_of_lane(F& sum, F w, F value) {
    asm volatile("fmla %0.8h, %1.8h, %2.h[%3]" : "+w"(sum) : "w"(w), "x"(value), "i"(Lane));
  }
  template <class F>
  static void load_one(F& value, const Number* x, int64_t bytes) {
    asm volatile("ldr %h0, [%1, %2]" : "=x"(value) : "r"(x), "r"(bytes));
  }
  // Into the same register: from step to step, gcc would exchange them.
  template <class F>
  static void load_two(F& value, const Number* x, int64_t bytes) {
    asm volatile("ldr %s0, [%1, %2]" : "+x"(value) : "r"(x), "r"(bytes));
  }
  template <class F>
  static void load_vector(F& value, const Number* x, int64_t bytes) {
    asm volatile("ldr %q0, [%1, %2]" : "+x"(value) : "r"(x), "r"(bytes));
  }
};

}  // namespace

constexpr HalfConvBlockedKernels half_conv_blocked_kernels_neon_fp16 = ConvBlockedTiles<NeonTile<Halves>>::table();

}  // namespace tenon::kernels

#include "kernels/simd/avx512.h"

#include "kernels/conv_blocked/tile_kernel.h"

namespace tenon::kernels {
namespace {

struct Tile : BroadcastPixels<Avx512, 1> {
  static constexpr int vectors = 1;
  static constexpr int pixels = 16;
  static constexpr int two_pixels = 14;
  static constexpr bool orders_statements = false;
  static constexpr int dw_pixels = 8;
  static constexpr int registers = 32, row_lines = 2;
  static constexpr int64_t least_plain_depth = 5;

  // These stay in their order: gcc would load a pixel for each product, and move sums from register to register.
  template <class F>
  static void load(F& v, const float* p) {
    asm volatile("vmovups %1, %0" : "=v"(v) : "m"(*reinterpret_cast<const float(*)[S::width]>(p)));
  }
  template <class F>
  static void add_product(F& sum, F a, F b) {
    asm volatile("vfmadd231ps %2, %1, %0" : "+v"(sum) : "v"(a), "v"(b));
  }
};

}  // namespace

constexpr ConvBlockedKernels conv_blocked_kernels_avx512 = ConvBlockedTiles<Tile>::table();

}  // namespace tenon::kernels

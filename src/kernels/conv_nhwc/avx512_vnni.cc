#include <utility>

#include "kernels/conv_nhwc/avx512_depthwise.h"
#include "kernels/conv_nhwc/avx512_pixels.h"

namespace tenon::kernels {
namespace {

template <int Rows>
void multiply(const NhwcTile& tile) {
  multiply_pixels<Rows>(tile, Rows, tile.taps * tile.bytes * vnni_columns);
}

template <int... Rows>
constexpr NhwcConvKernels table(std::integer_sequence<int, Rows...>) {
  return {.name = "avx512_vnni",
          .unsigned_pixels = true,
          .rows = vnni_rows,
          .columns = vnni_columns,
          .group = 4,
          .multiply = {multiply<Rows + 1>...},
          .depthwise = {depthwise<1>, depthwise<2>, depthwise<4>},
          .wide_depthwise = true};
}

}  // namespace

constexpr NhwcConvKernels nhwc_conv_kernels_avx512_vnni = table(std::make_integer_sequence<int, vnni_rows>{});

}  // namespace tenon::kernels

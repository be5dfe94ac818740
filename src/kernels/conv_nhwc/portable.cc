#include <algorithm>
#include <cmath>
#include <utility>

#include "kernels/conv_nhwc/tile.h"

namespace tenon::kernels {
namespace {

constexpr int rows = 2, columns = 8, group = 4;

template <class Tile>
uint8_t code(const Tile& tile, int32_t sum, float scale) {
  // fmax and fmin take the limit where a scale is NaN.
  const auto low = static_cast<float>(tile.lowest - tile.zero), high = static_cast<float>(tile.highest - tile.zero);
  const float limited = std::fmin(std::fmax(static_cast<float>(sum) * scale, low), high);
  return static_cast<uint8_t>(static_cast<int32_t>(std::nearbyint(limited)) + tile.zero);
}

template <int Rows>
void multiply(const NhwcTile& tile) {
  const auto* weights = reinterpret_cast<const int8_t*>(tile.weights);
  for (int64_t column = 0; column < tile.panels * columns; column += columns) {
    int32_t sums[Rows][columns];
    for (int32_t(&row)[columns] : sums) std::copy_n(tile.bias + column, columns, row);
    for (int64_t tap = 0; tap < tile.taps; ++tap) {
      for (int64_t c = 0; c < tile.bytes; c += group, weights += group * columns) {
        for (int i = 0; i < Rows; ++i) {
          const auto* pixel = reinterpret_cast<const int8_t*>(tile.pixels[tap * Rows + i] + c);
          for (int j = 0; j < columns; ++j) {
            int32_t sum = 0;
            for (int k = 0; k < group; ++k) sum += pixel[k] * weights[j * group + k];
            sums[i][j] = static_cast<int32_t>(static_cast<uint32_t>(sums[i][j]) + static_cast<uint32_t>(sum));
          }
        }
      }
    }
    for (int i = 0; i < Rows; ++i) {
      for (int64_t j = 0; j < std::min<int64_t>(columns, tile.stored - column); ++j)
        tile.y[i * tile.pixel + column + j] = code(tile, sums[i][j], tile.scales[column + j]);
    }
  }
}

template <int Outputs>
void depthwise(const NhwcDepthwiseTile& tile) {
  const auto* weights = reinterpret_cast<const int8_t*>(tile.weights);
  for (int64_t c = 0; c < tile.channels; ++c) {
    const int64_t lane = c % nhwc_lanes;
    const int8_t* own = weights + ((c - lane) * tile.quads * Outputs + lane) * 4;
    for (int j = 0; j < Outputs; ++j) {
      auto sum = static_cast<uint32_t>(tile.bias[c]);
      for (int64_t i = 0; i < 4 * tile.quads; ++i) {
        const int8_t weight = own[(i / 4 * Outputs + j) * 4 * nhwc_lanes + i % 4];
        sum += static_cast<uint32_t>(static_cast<int8_t>(tile.pixels[i][c]) * weight);
      }
      tile.y[j * tile.channels + c] = code(tile, static_cast<int32_t>(sum), tile.scales[c]);
    }
  }
}

template <int... Rows>
constexpr NhwcConvKernels table(std::integer_sequence<int, Rows...>) {
  return {.name = "portable",
          .rows = rows,
          .columns = columns,
          .group = group,
          .multiply = {multiply<Rows + 1>...},
          .depthwise = {depthwise<1>, depthwise<2>, depthwise<4>}};
}

}  // namespace

constexpr NhwcConvKernels nhwc_conv_kernels_portable = table(std::make_integer_sequence<int, rows>{});

}  // namespace tenon::kernels

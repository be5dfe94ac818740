// The inner loops of depthwise_row.h, written once for all instruction sets.
#pragma once

#include <utility>

#include "kernels/conv_blocked/depthwise_row.h"
#include "kernels/conv_blocked/finish.h"
#include "kernels/simd/simd.h"

namespace tenon::kernels {

// Tile is a struct of internal linkage: S (what vectors can do), Number, registers, vectors (of a block), row_lines,
// load and add_product.
template <class Tile>
struct DepthwiseRowTiles {
  using S = typename Tile::S;
  using Number = typename Tile::Number;
  using F = typename S::F;
  static constexpr int block = Tile::vectors * S::width, pixels = most_row_pixels;

  // L lines at once of P pixels that read columns [Left, all - Right) of their windows or, where not Known, those in
  // the image. Lines follow each other here, as what is between two calls would take as long as a row of products.
  template <int L, int P, int Width, int Stride, int Left, int Right, bool Known>
  static void run(const DepthwiseRowTile<Number>& t) {
    // The vectors of a block that are worked on at once: several where the registers are there for it.
    constexpr int V = L == 1 && (P + Width + 1) * Tile::vectors <= Tile::registers ? Tile::vectors : 1;
    const int64_t left = Known ? Left : t.first_column < 0 ? -t.first_column : 0;
    const int64_t right = Known ? 0 : t.width - t.first_column;
    const auto in_image = [=](int column) {
      return Known ? column >= Left && column < (P - 1) * Stride + Width - Right : column >= left && column < right;
    };
    for (int64_t tile = 0; tile < t.tiles; ++tile) {
      const int64_t column = (t.first_column + left + tile * P * Stride) * block, pixel = tile * P * block;
#pragma GCC unroll 1
      for (int64_t line = 0; line < t.lines; line += L) {
#pragma GCC unroll 1
        for (int64_t channel = 0; channel < block; channel += V * S::width)
          run_lines<L, V, P, Width, Stride>(t, line, column + channel, left, channel, pixel + line * t.y_step + channel,
                                            in_image);
      }
    }
  }

 private:
  // Some vectors of L lines of a tile. `offset` is where column `left` of the windows lies in rows of the image, `to`
  // is where the first pixel goes.
  template <int L, int V, int P, int Width, int Stride, class InImage>
  [[gnu::always_inline]] static void run_lines(const DepthwiseRowTile<Number>& t, int64_t line, int64_t offset,
                                               int64_t left, int64_t channel, int64_t to, InImage in_image) {
    F acc[L * V][P];
#pragma GCC unroll 4
    for (int u = 0; u < L * V; ++u) {
#pragma GCC unroll 8
      for (int i = 0; i < P; ++i) acc[u][i] = S::load(t.start + channel + u % V * S::width);
    }
    // The rows that some line reads in the image: the last line the first of them, the first line the last.
    const int64_t first = t.first_rows[line + L - 1], end = t.end_rows[line], step = t.kernel_rows;
    const Number* w = t.weights + first * Width * block + channel;
    const Number* const* rows = t.rows + line * step + first;
    // Column `left` of the window in the row of each line; known one row ahead.
    const Number *x[L], *next[L];
#pragma GCC unroll 4
    for (int l = 0; l < L; ++l) next[l] = rows[l * step] + offset;
    for (int64_t k = first; k < end; ++k, w += Width * block) {
      ++rows;
#pragma GCC unroll 4
      for (int l = 0; l < L; ++l) x[l] = next[l], next[l] = rows[l * step] + offset;
      F weights[Width][V];
#pragma GCC unroll 8
      for (int column = 0; column < Width; ++column) {
#pragma GCC unroll 4
        for (int j = 0; j < V; ++j) weights[column][j] = S::load(w + column * block + j * S::width);
      }
      const auto at = [=](int l, int column, int j) { return x[l] + ((column - left) * block + j * S::width); };
      add_row<L, V, P, Width, Stride>(in_image, at, weights, acc);
    }
    const int64_t y_step = t.y_step;
    finish<Tile>(acc, t.residual ? t.residual + to : nullptr, t.clamp, t.lo, t.hi, t.y + to,
                 [y_step](int u, int i) { return u / V * y_step + i * block + u % V * S::width; });
  }

  // What a row of the kernel adds. A column is read once, by all pixels that it is for. Columns follow each other such
  // that products that are added to the same sum are as far apart as there are sums.
  template <int L, int V, int P, int Width, int Stride, class InImage, class At>
  [[gnu::always_inline]] static void add_row(InImage in_image, At at, const F (&weights)[Width][V],
                                             F (&acc)[L * V][P]) {
#pragma GCC unroll 2
    for (int parity = 0; parity < Stride; ++parity) {
      const int taps = (Width - parity + Stride - 1) / Stride;  // parity, parity + Stride, …
#pragma GCC unroll 8
      for (int turn = 0; turn < taps; ++turn) {
#pragma GCC unroll 4
        for (int u = 0; u < L * V; ++u) {
#pragma GCC unroll 16
          for (int m = turn; m < P + taps - 1; m += taps) {
            const int column = m * Stride + parity;
            if (!in_image(column)) continue;
            F value;
            Tile::load(value, at(u / V, column, u % V));
#pragma GCC unroll 8
            for (int q = 0; q < taps; ++q) {
              if (m - q >= 0 && m - q < P) Tile::add_product(acc[u][m - q], value, weights[parity + q * Stride][u % V]);
            }
          }
        }
      }
    }
  }

  template <int Width, int Stride, int L>
  static constexpr void fill_lines(DepthwiseRowKernels<Number>& k) {
    // As convolutions have it whose output is as large as the input, or half as large.
    constexpr int left = Width / 2, right = Width / 2 + 1 - Stride;
    k.left = left;
    k.right = right;
    k.known[L][0][0] = &run<L, pixels, Width, Stride, 0, 0, true>;
    k.known[L][0][1] = &run<L, pixels, Width, Stride, 0, right, true>;
    k.known[L][1][0] = &run<L, pixels, Width, Stride, left, 0, true>;
    k.known[L][1][1] = &run<L, pixels, Width, Stride, left, right, true>;
  }
  template <int Width, int Stride, int... L, int... P>
  static constexpr DepthwiseRowKernels<Number> fill(std::integer_sequence<int, L...>,
                                                    std::integer_sequence<int, P...>) {
    DepthwiseRowKernels<Number> k = {};
    k.pixels = pixels;
    k.lines = Tile::row_lines;
    (fill_lines<Width, Stride, L + 1>(k), ...);
    ((k.any[P + 1] = &run<1, P + 1, Width, Stride, 0, 0, false>), ...);
    return k;
  }
  template <int Width, int Stride>
  static constexpr DepthwiseRowKernels<Number> kernels() {
    return fill<Width, Stride>(std::make_integer_sequence<int, Tile::row_lines>{},
                               std::make_integer_sequence<int, pixels>{});
  }

 public:
  static constexpr DepthwiseRowTable<Number> table() {
    return {{kernels<3, 1>(), kernels<3, 2>(), kernels<5, 1>(), kernels<5, 2>(), kernels<7, 1>()}};
  }
};

}  // namespace tenon::kernels

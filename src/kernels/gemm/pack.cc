#include "kernels/gemm/pack.h"

#include <algorithm>
#include <cstring>

namespace tenon::kernels {
namespace {

using F4 [[gnu::vector_size(16)]] = float;

F4 load4(const float* p) {
  F4 v;
  std::memcpy(&v, p, sizeof v);
  return v;
}
void store4(float* p, F4 v) { std::memcpy(p, &v, sizeof v); }

// out[p * width + i] = src[i * ld + p] for i < Lanes, p < 4.
template <int Lanes>
void transpose_4_steps(const float* src, int64_t ld, int64_t width, float* out) {
  F4 lane[Lanes];
#pragma GCC unroll 8
  for (int i = 0; i < Lanes; ++i) lane[i] = load4(src + i * ld);
  if constexpr (Lanes == 2) {
    const F4 low = __builtin_shufflevector(lane[0], lane[1], 0, 4, 1, 5);
    const F4 high = __builtin_shufflevector(lane[0], lane[1], 2, 6, 3, 7);
    std::memcpy(out, &low, sizeof low / 2);
    std::memcpy(out + width, reinterpret_cast<const float*>(&low) + 2, sizeof low / 2);
    std::memcpy(out + 2 * width, &high, sizeof high / 2);
    std::memcpy(out + 3 * width, reinterpret_cast<const float*>(&high) + 2, sizeof high / 2);
  } else {
#pragma GCC unroll 2
    for (int i = 0; i < Lanes; i += 4) {
      const F4 a = lane[i], b = lane[i + 1], c = lane[i + 2], d = lane[i + 3];
      const F4 ac_low = __builtin_shufflevector(a, c, 0, 4, 1, 5), ac_high = __builtin_shufflevector(a, c, 2, 6, 3, 7);
      const F4 bd_low = __builtin_shufflevector(b, d, 0, 4, 1, 5), bd_high = __builtin_shufflevector(b, d, 2, 6, 3, 7);
      store4(out + i, __builtin_shufflevector(ac_low, bd_low, 0, 4, 1, 5));
      store4(out + width + i, __builtin_shufflevector(ac_low, bd_low, 2, 6, 3, 7));
      store4(out + 2 * width + i, __builtin_shufflevector(ac_high, bd_high, 0, 4, 1, 5));
      store4(out + 3 * width + i, __builtin_shufflevector(ac_high, bd_high, 2, 6, 3, 7));
    }
  }
}

// out[p * width + i] = src[i * ld + p] for i < Lanes, p < k.
template <int Lanes>
void transpose_lanes(const float* src, int64_t ld, int64_t k, int64_t width, float* out) {
  int64_t p = 0;
  if constexpr (Lanes > 1) {
    for (; p + 4 <= k; p += 4) transpose_4_steps<Lanes>(src + p, ld, width, out + p * width);
  }
  for (; p < k; ++p) {
    for (int i = 0; i < Lanes; ++i) out[p * width + i] = src[i * ld + p];
  }
}

// out[p * width + i] = src[i * ld + p] for i < lanes, p < k.
void transpose_all_lanes(const float* src, int64_t ld, int64_t lanes, int64_t k, int64_t width, float* out) {
  int64_t i = 0;
  for (; i + 8 <= lanes; i += 8) transpose_lanes<8>(src + i * ld, ld, k, width, out + i);
  for (; i + 4 <= lanes; i += 4) transpose_lanes<4>(src + i * ld, ld, k, width, out + i);
  for (; i + 2 <= lanes; i += 2) transpose_lanes<2>(src + i * ld, ld, k, width, out + i);
  for (; i < lanes; ++i) transpose_lanes<1>(src + i * ld, ld, k, width, out + i);
}

void pack_transposed(const float* src, int64_t ld, int lanes, int64_t k, int width, float* out) {
  transpose_all_lanes(src, ld, lanes, k, width, out);
  if (lanes == width) return;
  for (int64_t p = 0; p < k; ++p) std::fill(out + p * width + lanes, out + (p + 1) * width, 0.0f);
}

// Full panels of a width known to the compiler, a few rows at a time so that long rows are read in order.
template <int Width>
void pack_rows(const float* src, int64_t ld, int64_t panels, int64_t k, float* out) {
  constexpr int64_t rows_at_once = 8;
  for (int64_t first = 0; first < k; first += rows_at_once) {
    const int64_t last = std::min(first + rows_at_once, k);
    for (int64_t panel = 0; panel < panels; ++panel) {
      float* to = out + (panel * k + first) * Width;
      const float* from = src + first * ld + panel * Width;
      for (int64_t p = first; p < last; ++p, to += Width, from += ld) std::memcpy(to, from, Width * sizeof(float));
    }
  }
}

void pack_rows(const float* src, int64_t ld, int64_t panels, int64_t k, int width, float* out) {
  switch (width) {
    case 4:
      return pack_rows<4>(src, ld, panels, k, out);
    case 6:
      return pack_rows<6>(src, ld, panels, k, out);
    case 8:
      return pack_rows<8>(src, ld, panels, k, out);
    case 12:
      return pack_rows<12>(src, ld, panels, k, out);
    case 14:
      return pack_rows<14>(src, ld, panels, k, out);
    case 16:
      return pack_rows<16>(src, ld, panels, k, out);
    case 32:
      return pack_rows<32>(src, ld, panels, k, out);
  }
  for (int64_t i = 0; i < panels; ++i) {
    for (int64_t p = 0; p < k; ++p) {
      std::memcpy(out + (i * k + p) * width, src + p * ld + i * width, static_cast<size_t>(width) * sizeof(float));
    }
  }
}

}  // namespace

void pack_panels(const float* src, int64_t ld, bool lanes_contiguous, int64_t lanes, int64_t k, int width, bool padded,
                 float* out) {
  const int64_t full = lanes / width;
  const int rest = static_cast<int>(lanes % width), rest_width = padded ? width : rest;
  if (!lanes_contiguous) {
    for (int64_t i = 0; i < full; ++i) pack_transposed(src + i * width * ld, ld, width, k, width, out + i * k * width);
    if (rest) pack_transposed(src + full * width * ld, ld, rest, k, rest_width, out + full * k * width);
    return;
  }
  pack_rows(src, ld, full, k, width, out);
  if (!rest) return;
  src += full * width;
  out += full * k * width;
  for (int64_t p = 0; p < k; ++p, src += ld, out += rest_width) {
    std::copy(src, src + rest, out);
    std::fill(out + rest, out + rest_width, 0.0f);
  }
}

void transpose_matrix(const float* src, int64_t ld, int64_t rows, int64_t columns, float* out, int64_t out_step) {
  transpose_all_lanes(src, ld, rows, columns, out_step, out);
}

}  // namespace tenon::kernels

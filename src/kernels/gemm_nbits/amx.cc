#include "base/rounding.h"
#include "kernels/amx_tiles.h"
#include "kernels/gemm_nbits/vnni_codes.h"

namespace tenon::kernels {
namespace {

using F = Avx512::F;
using Codes = NbitsVnni<1>;
// Registers 0 to 2 and 3 to 5 hold the sums of a run, for each digit, 6 digits of the rows, 7 codes.
constexpr int rows = 16, columns = 16, register_bytes = 64;

template <int bits>
void unpack(int64_t blocks, int64_t head_bytes, int64_t steps, const uint8_t* panel, uint8_t* to) {
  using Tiles = NbitsTiles<Codes>;
  constexpr int groups_of_step = Tiles::groups_of_step<bits>;
  const __m512i excess = _mm512_set1_epi8(static_cast<char>(Codes::excess(bits)));
  for (int64_t block = 0; block < blocks; ++block) {
    std::memcpy(to, panel, static_cast<size_t>(head_bytes));
    panel += head_bytes;
    to += head_bytes;
    for (int64_t i = 0; i < steps / nbits_group; i += groups_of_step, panel += Tiles::bytes_of_step<bits>) {
#pragma GCC unroll 2
      for (int group = 0; group < groups_of_step; ++group, to += register_bytes) {
        __m512i codes[1];
        Codes::codes<bits>(panel, group, codes);
        _mm512_storeu_si512(to, _mm512_sub_epi8(codes[0], excess));
      }
    }
  }
}

// For products of so many steps of k.
AmxTileConfig tiles_of(int64_t steps) {
  AmxTileConfig config = whole_amx_tiles();
  config.bytes_per_row[6] = static_cast<uint16_t>(steps);
  config.row_count[7] = static_cast<uint8_t>(steps / nbits_group);
  return config;
}

template <int Digits>
using Sums = int32_t[Digits][rows][columns];

// The digits and codes that some products begin with.
[[gnu::always_inline]] inline void load_first(int64_t run, const int8_t* digits, const uint8_t* codes) {
  _tile_loadd(7, codes, register_bytes);
  _tile_loadd(6, digits, static_cast<size_t>(run));
}

template <int Sums>
[[gnu::always_inline]] inline void multiply_digit(int64_t run, const int8_t* digits) {
  _tile_loadd(6, digits, static_cast<size_t>(run));
  multiply_tiles<Sums, 6, 7>();
}

// A run's products, some steps at a time; what they begin with is loaded. Digits are [digit][row][step].
template <int Digits, int First>
[[gnu::always_inline]] inline void multiply_run(int64_t run, int64_t steps, const int8_t* digits,
                                                const uint8_t* codes) {
  zero_tile<First>();
  if constexpr (Digits > 1) zero_tile<First + 1>();
  if constexpr (Digits > 2) zero_tile<First + 2>();
  for (int64_t step = 0;;) {
    multiply_tiles<First, 6, 7>();
    if constexpr (Digits > 1) multiply_digit<First + 1>(run, digits + rows * run + step);
    if constexpr (Digits > 2) multiply_digit<First + 2>(run, digits + 2 * rows * run + step);
    step += steps;
    if (step == run) break;
    load_first(run, digits + step, codes + step * columns);
  }
}

template <int Digits, int First>
[[gnu::always_inline]] inline void store_run(Sums<Digits>& to) {
  store_tile<First>(to[0], register_bytes);
  if constexpr (Digits > 1) store_tile<First + 1>(to[1], register_bytes);
  if constexpr (Digits > 2) store_tile<First + 2>(to[2], register_bytes);
}

// What a run adds to the results: a vector is the columns of a row.
template <bool HasZeros, int Digits>
[[gnu::always_inline]] inline void add_run(const Sums<Digits>& sums, const uint8_t* head, const float* row_scales,
                                           const float* totals, F (&results)[rows]) {
  const auto scales = (F)_mm512_loadu_ps(head), zeros = HasZeros ? (F)_mm512_loadu_ps(head + register_bytes) : F{};
#pragma GCC unroll 16
  for (int row = 0; row < rows; ++row) {
    const auto digit = [&](int d) { return (F)_mm512_cvtepi32_ps(_mm512_load_si512(sums[d][row])); };
    F value = NbitsTiles<Codes>::put_together<Digits>(digit);
    if constexpr (HasZeros) value = Avx512::fma(zeros, F{} - totals[row], value);
    results[row] = Avx512::fma(value, scales * row_scales[row], results[row]);
  }
}

// Runs take turns with two sets of registers. The sums of one leave them when the next one has been multiplied, as a
// store waits for the last product, and products for the store; and when the loads for one more have begun, as a load
// waits for stores that lie at the same place in a page. They are added to the results when that has been multiplied.
template <bool HasZeros, int Digits>
void multiply(const NbitsTile& given) {
  constexpr int64_t head_bytes = columns * sizeof(float) * (HasZeros ? 2 : 1);
  constexpr int first = 0, second = most_nbits_digits;
  const NbitsTile tile = given;
  const int64_t steps = tile.run / divide_up<int64_t>(tile.run, register_bytes), all = tile.blocks * tile.runs;
  const int64_t codes_of_run = tile.run * columns;
  const AmxTileConfig config = tiles_of(steps);
  _tile_loadconfig(&config);
  alignas(64) Sums<Digits> sums[2];
  F results[rows];
#pragma GCC unroll 16
  for (int row = 0; row < rows; ++row) results[row] = F{};
  const int8_t* digits = tile.digits;
  const uint8_t *codes = tile.panel + head_bytes, *head = tile.panel;
  const float *row_scales = tile.scales, *totals = tile.totals;
  int64_t multiplied = 0, added = 0;  // runs of a block
  load_first(tile.run, digits, codes);
  for (int64_t i = 0; i < all + 2; ++i) {
    if (i < all) {
      if (i % 2 == 0)
        multiply_run<Digits, first>(tile.run, steps, digits, codes);
      else
        multiply_run<Digits, second>(tile.run, steps, digits, codes);
      codes += codes_of_run;
      digits += Digits * rows * tile.run;
      if (++multiplied == tile.runs) {
        multiplied = 0;
        codes += head_bytes;
      }
      if (i + 1 < all) load_first(tile.run, digits, codes);
    }
    if (i > 0 && i <= all) i % 2 == 0 ? store_run<Digits, second>(sums[1]) : store_run<Digits, first>(sums[0]);
    if (i < 2) continue;
    add_run<HasZeros, Digits>(sums[i % 2], head, row_scales, totals, results);
    row_scales += rows;
    totals += rows;
    if (++added < tile.runs) continue;
    added = 0;
    head += head_bytes + tile.runs * codes_of_run;
  }
  leave_amx();
#pragma GCC unroll 16
  for (int row = 0; row < rows; ++row) _mm512_storeu_ps(tile.out + row * tile.out_stride, (__m512)results[row]);
}

template <bool HasZeros>
constexpr void fill(MultiplyNbits (&to)[most_nbits_digits][NbitsByteKernels::sizes]) {
  to[0][0] = multiply<HasZeros, 1>;
  to[1][0] = multiply<HasZeros, 2>;
  to[2][0] = multiply<HasZeros, 3>;
}

// Dot products for few rows, products of matrices for many.
constexpr NbitsKernels table() {
  NbitsKernels result = NbitsTiles<Codes>::table("amx");
  result.bytes = {
      .least_rows = rows, .group = 0, .unpack = {unpack<2>, unpack<4>, unpack<8>}, .rows = {{rows}, {rows}, {rows}}};
  fill<false>(result.bytes.multiply[0]);
  fill<true>(result.bytes.multiply[1]);
  return result;
}

}  // namespace

constexpr NbitsKernels nbits_kernels_amx = table();

}  // namespace tenon::kernels

// What differs between instruction sets in products with codes of few bits.
#pragma once

#include <cstdint>
#include <vector>

namespace tenon::kernels {

inline constexpr int most_nbits_digits = 3, most_nbits_rows = 16, most_nbits_columns = 32;
// The most rows of a tile: a power of two.
constexpr int nbits_tile_rows(int digits) { return digits == 1 ? 8 : 4; }
// Codes of four steps of k of a column are a group, [group][columns][4].
inline constexpr int nbits_group = 4;
// In this float, adding to the lowest bits counts by one: sums that start with its bits are floats, larger by it.
inline constexpr float nbits_base = 12582912;

// Some rows times a panel. The rows' digits are [run][digit][group][row][steps of a group], highest digit first. Sums
// of products with a digit start with [run][digit][row]. The rows' scales and the sums of their numbers, before they
// are scaled, are [run][row].
struct NbitsTile {
  const uint8_t* panel;
  int64_t blocks, runs, run;  // runs of a block, steps of a run
  const int8_t* digits;
  const int32_t* starts;
  const float *scales, *totals;
  float* out;  // [row][columns], rows `out_stride` apart
  int64_t out_stride;
};

using MultiplyNbits = void (*)(const NbitsTile& tile);

// Products of many rows, by panels whose codes were made bytes before, less their middle: sums have no start of their
// own.
struct NbitsByteKernels {
  static constexpr int sizes = 3;
  int64_t least_rows = 0;  // of a product; none if it is 0
  int64_t group = 0;       // steps of a row that lie side by side; all of a run if it is 0
  // By bits: such a panel, with blocks of so many steps. What each of them begins with is copied.
  void (*unpack[3])(int64_t blocks, int64_t head_bytes, int64_t steps, const uint8_t* panel, uint8_t* to) = {};
  // By digits - 1: tiles of so many rows, the largest first. The kernels besides by whether there are zero points other
  // than the middle.
  int rows[most_nbits_digits][sizes] = {};
  MultiplyNbits multiply[2][most_nbits_digits][sizes] = {};
};

struct NbitsKernels {
  const char* name;
  int columns;  // of a panel
  // By bits (2, 4, 8): what the codes that are multiplied are more than codes less their middle, 2^(bits - 1).
  int32_t excess[3];
  // By bits, whether there are zero points other than the middle, digits - 1, and the power of two that is the rows'
  // count.
  MultiplyNbits multiply[3][2][most_nbits_digits][4];
  NbitsByteKernels bytes = {};
};

extern const NbitsKernels nbits_kernels_portable;
#if defined(__aarch64__)
extern const NbitsKernels nbits_kernels_neon_dotprod, nbits_kernels_neon_i8mm;
#elif defined(__x86_64__)
extern const NbitsKernels nbits_kernels_avx2, nbits_kernels_avx512_vnni, nbits_kernels_amx;
#endif

// Those that this processor can run and best_isa() allows, worst to best.
std::vector<const NbitsKernels*> available_nbits_kernels();

}  // namespace tenon::kernels

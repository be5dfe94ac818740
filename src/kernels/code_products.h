// Products of bytes whose sums become codes again, for kernels that compute many tiles in turn.
#pragma once

#include <cstdint>

namespace tenon::kernels {

// Whole numbers that are added to this, below 2^22 either way, are the float's lowest bits.
inline constexpr float code_shift = 12582912.0f;
inline constexpr int32_t code_shift_bits = 0x4b400000;

// What is known of sums and of what they are scaled to: nothing; both are below 2^22 either way; besides, what they are
// scaled to is a number of 16 bits.
enum class CodeRange : uint8_t { any, small, tiny };

// Of sums that are not larger than this either way. Scales may be no numbers.
constexpr CodeRange code_range(double largest_sum, double scale) {
  constexpr double small = 1 << 22, tiny = 32767;
  const double scaled = largest_sum * (scale < 0 ? -scale : scale);
  if (!(largest_sum < small && scaled < small)) return CodeRange::any;
  return scaled < tiny ? CodeRange::tiny : CodeRange::small;
}

inline constexpr int code_tile_rows = 32, code_tile_columns = 32, code_step_bytes = 64;

// Some rows of the left side, unsigned, and where their codes go.
struct CodeRows {
  const uint8_t* first;
  int64_t stride;          // from a row to the next
  const int64_t* offsets;  // [steps], from the beginning of a row to the bytes that a step multiplies
  uint8_t* const* to;      // [code_tile_rows], of the first column
};

// Rows times panels of columns: sums, plus the bias, scaled, rounded to even, the zero point added, saturated; the
// lowest code where a scale is NaN.
struct CodeProduct {
  const CodeRows* tiles;
  int64_t tile_count;
  int64_t steps;
  const uint8_t* weights;  // [panels][steps][code_step_bytes / 4][code_tile_columns][4], signed
  int64_t panels;
  int64_t panels_at_once;  // that all rows are multiplied by, before the next ones
  const int32_t* bias;     // by column of all panels, and so are the scales
  const float* scales;
  int64_t stored;   // how many columns are stored, and have a bias and a scale
  bool is_limited;  // sums that are scaled are known to be within 32 bits
  bool is_signed;   // the codes
  int32_t zero;
};

// Panels for panels_at_once: some rows meet several while they are in the first cache.
constexpr int64_t code_panels_at_once(int64_t panel_bytes) {
  constexpr int64_t bytes = 256 << 10;
  return bytes / panel_bytes;
}

}  // namespace tenon::kernels

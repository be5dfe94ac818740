// Matrices of bytes as the micro-kernels read them.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/thread_pool.h"
#include "kernels/gemm/gemm.h"
#include "kernels/gemm_int8/tile.h"

namespace tenon::kernels {

// A row-major matrix of int8_t or uint8_t whose rows start `ld` apart; `transposed` means that it is used transposed.
struct ByteMatrix {
  const void* data;
  bool is_signed;
  int64_t ld;
  bool transposed = false;
};

// One for all lanes or one for each; null means zero.
struct ByteZeroPoints {
  const int32_t* data = nullptr;
  bool by_lane = false;
};

// One side of a product in memory that someone else owns. All arrays are padded to whole panels.
struct BytePanels {
  const Int8Kernels* kernels;
  GemmSide side;
  int64_t lanes, k;
  uint8_t* codes;
  int32_t* zeros;  // zero points as the codes are shifted
  int32_t* sums;   // over k, of the left side's codes and of the right side's codes less their zero points
  // Rows of a left side that all_tiles reads where they are: only a last panel that is not whole is in `codes`.
  const uint8_t* unpacked = nullptr;
  int64_t unpacked_ld = 0;
  // Over k, of the right side's codes less their zero points, each without its sign. Null where they are not known.
  const int32_t* magnitudes = nullptr;
  bool has_one_zero = false;  // known to have one zero point for all lanes

  int width() const {
    if (side == GemmSide::right) return kernels->tile_columns;
    return lanes == 1 ? kernels->row_lanes : kernels->tile_rows;
  }
  int64_t panels() const { return (lanes + width() - 1) / width(); }
  int group() const { return side == GemmSide::left ? kernels->left_k_group : kernels->k_group; }
  int64_t steps() const { return (k + kernels->left_k_group - 1) / kernels->left_k_group * kernels->left_k_group; }
  int64_t panel_bytes() const { return steps() * width(); }

  // What is XORed to a byte to make it a code, and what is added to its zero point.
  uint8_t flip(bool is_signed) const { return is_signed == shifted_up() ? 0x80 : 0; }
  int32_t shift(bool is_signed) const { return (shifted_up() ? 128 : 0) - (is_signed ? 0 : 128); }
  bool shifted_up() const { return side == GemmSide::left && kernels->left_is_unsigned; }

  size_t magnitude_bytes() const {
    return side == GemmSide::right && kernels->magnitudes ? sizeof(int32_t) * static_cast<size_t>(panels() * width())
                                                          : 0;
  }

  // Bytes of memory that the panels need, and panels in that memory, which is aligned to cache lines.
  size_t bytes() const;
  void place(void* memory);
};

// Fills codes, zeros and, where they are wanted, sums. With `pool` null it runs in the caller.
void pack_panels(ThreadPool* pool, const BytePanels& to, ByteMatrix from, ByteZeroPoints zeros, bool with_sums = true);

// Fills sums, where codes and zeros are there.
void sum_panels(ThreadPool* pool, const BytePanels& panels);
// The same for magnitudes, of which there are magnitude_bytes().
void sum_magnitudes(ThreadPool* pool, const BytePanels& panels, int32_t* magnitudes);

}  // namespace tenon::kernels

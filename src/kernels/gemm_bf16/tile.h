// What differs between instruction sets in the multiplication of bfloat16.
#pragma once

#include <cstdint>
#include <vector>

namespace tenon::kernels {

// Panels hold some steps of k of one lane side by side, a group, then those of the next lane: [k /
// group][lanes][group].
struct Bf16Kernels {
  // tile[i * tile_columns + j] = sum over k steps of a[i] * b[j], in float. k is a multiple of left_k_group.
  using Multiply = void (*)(int64_t k, const uint16_t* a, const uint16_t* b, float* tile);

  const char* name;
  int tile_rows;
  int tile_columns;
  int k_group;       // of the right side
  int left_k_group;  // a multiple of that
  Multiply all_rows;
  Multiply half_of_rows;  // the first half; may leave the other rows of the tile as they are
  // Fills a left panel with `rows` rows of k floats that start `ld` apart, and with zeros up to whole groups and rows.
  void (*pack_rows)(const float* from, int64_t ld, int64_t rows, int64_t k, uint16_t* to);
  // Called by a thread before it multiplies, and after; may be null.
  void (*enter)() = nullptr;
  void (*leave)() = nullptr;
};

inline constexpr int most_bf16_tile_rows = 32, most_bf16_tile_columns = 32;

extern const Bf16Kernels bf16_kernels_portable;
#if defined(__aarch64__)
extern const Bf16Kernels bf16_kernels_neon_bf16;
#elif defined(__x86_64__)
extern const Bf16Kernels bf16_kernels_amx;
#endif

// Those that this processor can run and best_isa() allows, worst to best; the first one is no faster than floats.
std::vector<const Bf16Kernels*> available_bf16_kernels();

}  // namespace tenon::kernels

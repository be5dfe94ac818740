// Copies a piece of a matrix into a panel: `width` values next to each other for each step along k.
#pragma once

#include <cstdint>

namespace tenon::kernels {

// Panel `i` of a run of panels holds lanes [i * width, (i + 1) * width) of the matrix. Lane l at step p is
// src[p * ld + l] when `lanes_contiguous`, else src[l * ld + p]. Where the last panel has fewer lanes than the others,
// the lanes of its steps are `width` apart too, with zeros after them, if `padded`; else they follow each other. Panels
// start k * width floats apart in `out`.
void pack_panels(const float* src, int64_t ld, bool lanes_contiguous, int64_t lanes, int64_t k, int width, bool padded,
                 float* out);

// out[c * out_step + r] = src[r * ld + c] for r < rows, c < columns.
void transpose_matrix(const float* src, int64_t ld, int64_t rows, int64_t columns, float* out, int64_t out_step);

}  // namespace tenon::kernels

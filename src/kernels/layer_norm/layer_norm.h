// Normalisation of float rows.
#pragma once

#include <cstdint>

#include "base/thread_pool.h"
#include "kernels/dispatch.h"

namespace tenon::kernels {

// The instruction set these functions use now.
Isa layer_norm_isa();

// Rows that are added to those of x, over and over again when they are fewer.
struct NormAddend {
  const float* data = nullptr;
  int64_t rows = 1;

  const float* row(int64_t i, int64_t n) const { return data ? data + i % rows * n : nullptr; }
};

struct NormRows {
  const float* x;
  float* y;  // may be x, or an addend of as many rows
  int64_t rows;
  int64_t n;                     // floats of a row, contiguous
  const float* scale = nullptr;  // n floats, or null for ones
  const float* bias = nullptr;   // n floats, or null for zeros
  float epsilon = 1e-5f;
  float* mean = nullptr;  // one per row, where wanted
  float* inverse_deviation = nullptr;
  NormAddend addends[2] = {};  // what is normalised is x plus these; without a first one there is no second
  float* sum = nullptr;        // gets that sum, where it is wanted; overlaps nothing else
};

// y = (x - mean) / sqrt(variance + epsilon) * scale + bias, row by row.
void layer_norm(ThreadPool& pool, const NormRows& call);
// y = x / sqrt(mean of squares + epsilon) * scale + bias; `mean` is not written.
void rms_norm(ThreadPool& pool, const NormRows& call);

struct LayerNormKernels {
  Isa isa;
  float (*sum)(const float* x, int64_t n);
  // y = x + a + b, which is added up; b may be null, y may be any of them.
  float (*add)(const float* x, const float* a, const float* b, float* y, int64_t n);
  // Sum of (x - shift)^2.
  float (*sum_of_squares)(const float* x, float shift, int64_t n);
  // y = (x - shift) * factor * scale + bias; scale and bias may be null.
  void (*apply)(const float* x, float* y, int64_t n, float shift, float factor, const float* scale, const float* bias);
  // Rows [begin, end) of a call without addends: of layer_norm and of rms_norm.
  void (*layer_norm)(const NormRows& call, int64_t begin, int64_t end);
  void (*rms_norm)(const NormRows& call, int64_t begin, int64_t end);
};

TENON_WIDE_ISA_TABLES(LayerNormKernels, layer_norm_kernels)

}  // namespace tenon::kernels

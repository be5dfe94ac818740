// Products of matrices, by cublasLt.
#pragma once

#include "cuda/gpu.h"

namespace tenon::cuda {

// y = alpha * a @ b + beta * y, for matrices in rows that lie `a_row` and so on elements apart, and for `batch` of
// them, `a_step` and so on apart. a is [m, k] ([k, m] where it is transposed), b [k, n], y [m, n].
struct GemmShape {
  ElementType type = ElementType::float32, output = ElementType::float32;
  int64_t m = 0, n = 0, k = 0;
  bool transpose_a = false, transpose_b = false;
  int64_t a_row = 0, b_row = 0, y_row = 0;
  int64_t batch = 1, a_step = 0, b_step = 0, y_step = 0;
  double alpha = 1, beta = 0;
  bool allow_tf32 = false;
  int64_t alignment = 16;  // that all addresses have, in bytes

  static bool takes(ElementType type);
};

class Gemm {
 public:
  Gemm(GpuQueue& queue, const GemmShape& shape);
  void run(GpuQueue& queue, const void* a, const void* b, void* y) const;

 private:
  struct Descriptions;
  GemmShape shape_;
  std::shared_ptr<Descriptions> descriptions_;
};

}  // namespace tenon::cuda

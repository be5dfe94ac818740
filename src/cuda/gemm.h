// Products of matrices, by cublasLt.
#pragma once

#include "cuda/gpu.h"
#include "cuda/trial.h"

namespace tenon::cuda {

// What a library does with the results while it stores them: residual + result, + a bias for each column or channel,
// then the activation.
struct Epilogue {
  bool residual = false, bias = false, relu = false;

  bool is_empty() const { return !residual && !bias && !relu; }
};

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
  Epilogue epilogue;       // a residual lies as y does; beta is 0 then

  static bool takes(ElementType type);
};

class Gemm {
 public:
  Gemm(GpuQueue& queue, const GemmShape& shape);
  // Tries the ways that cublasLt proposes on these data, where that is worth it, and keeps the fastest.
  void choose_by_trial(GpuQueue& queue, Uses uses, const void* a, const void* b, void* y, const void* bias,
                       const void* residual);
  // What was asked for, or nothing where cublasLt has no way to do that.
  const Epilogue& epilogue() const { return shape_.epilogue; }
  void run(GpuQueue& queue, const void* a, const void* b, void* y, const void* bias = nullptr,
           const void* residual = nullptr) const;

 private:
  struct Descriptions;
  // The library's number for what went wrong; 0 where nothing did.
  Result propose_algorithms(GpuQueue& queue);
  std::string key() const;

  GemmShape shape_;
  std::shared_ptr<Descriptions> descriptions_;
};

}  // namespace tenon::cuda

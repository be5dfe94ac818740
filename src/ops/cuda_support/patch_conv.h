// Convolutions as products of their weights and patches of the image, in full precision, where libraries have little
// for images of few pixels.
#pragma once

#include "cuda/convolution.h"
#include "ops/cuda_support/loop.h"

namespace tenon::ops {

class CudaPatchConv {
 public:
  // Of float32, without groups, channels first.
  static bool takes(const cuda::ConvolutionShape& shape);

  CudaPatchConv(KernelRun& run, const cuda::ConvolutionShape& shape, const cuda::ConvolutionData& data);
  void run(KernelRun& run, const cuda::ConvolutionData& data) const;

 private:
  // What is multiplied at once: `images` from one on, of them `pixels` from one on.
  struct Part {
    int64_t image, images, pixel, pixels;
  };
  template <typename Visit>
  void for_each_part(Visit&& visit) const;
  cuda::Gemm product_of(KernelRun& run, const Part& part, const cuda::ConvolutionData& data) const;
  // Writes the patches of a part.
  void collect(KernelRun& run, const Part& part, const void* x) const;

  int64_t images_, channels_, outputs_, depth_;  // the depth is that of the product
  int64_t in_pixels_, pixels_;
  bool is_plain_;  // 1x1: the image is the matrix of its patches
  Part most_;
  std::optional<CudaBlocks> patches_;
  std::optional<cuda::Gemm> whole_, last_;
};

}  // namespace tenon::ops

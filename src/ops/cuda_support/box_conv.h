// Convolutions of images that have their channels last, by groups of four warps, on GPUs of compute capability 9.0: a
// box of pixels is fetched once, and every tap reads its windows from there.
#pragma once

#include "cuda/convolution.h"
#include "ops/cuda_support/epilogue.h"

namespace tenon::ops {

class CudaBoxConvolution {
 public:
  // What is worked on at a time: lines of the output, so many pixels of each, and 64 or 128 of its channels. Windows
  // follow each other in the box, line after line, and so some lie between lines, whose results nobody wants.
  struct Tile {
    int64_t lines, width, outputs;
  };
  // float16 and bfloat16; two spatial axes, one group, every window, dilations of 1, no residual. Inputs are those of a
  // ChannelsLastConv.
  static bool takes(KernelRun& run, const cuda::ConvolutionShape& shape);
  // Those that may be the fastest, none where no box fits.
  static std::vector<Tile> tiles(const cuda::ConvolutionShape& shape, int64_t processors);

  CudaBoxConvolution(KernelRun& run, const cuda::ConvolutionShape& shape, const CudaEpilogue& epilogue,
                     const Tile& tile);
  void run(KernelRun& run) const;

 private:
  cuda::ConvolutionShape shape_;
  Tile tile_;
  CudaBlocks blocks_;
};

}  // namespace tenon::ops

// Ways of ours to multiply matrices, beside those of a library.
#pragma once

#include <variant>

#include "ops/cuda_support/few_rows.h"
#include "ops/cuda_support/group_matmul.h"
#include "ops/cuda_support/pixel_product.h"
#include "ops/cuda_support/streamed_product.h"

namespace tenon::ops {

class CudaOwnProduct {
 public:
  using Way = std::variant<CudaFewRows, CudaGroupMatMul, CudaPixelProduct, CudaStreamedProduct>;

  explicit CudaOwnProduct(Way way) : way_(std::move(way)) {}
  void run(KernelRun& run) const {
    std::visit([&](const auto& way) { way.run(run); }, way_);
  }

 private:
  Way way_;
};

// Those that may be faster than a library: of a few rows, or by groups of warps.
std::vector<CudaOwnProduct> own_products(KernelRun& run, const MatMulShape& shape, const CudaEpilogue& epilogue);
// The same for 1x1 convolutions of images, as products of their pixels; a library `leaves_rest` of the epilogue to
// another pass or not.
std::vector<CudaOwnProduct> own_products_of_pixels(KernelRun& run, const MatMulShape& shape,
                                                   const CudaEpilogue& epilogue, bool leaves_rest);

}  // namespace tenon::ops

#include "ops/cuda_support/own_products.h"

namespace tenon::ops {

std::vector<CudaOwnProduct> own_products(KernelRun& run, const MatMulShape& shape, const CudaEpilogue& epilogue) {
  std::vector<CudaOwnProduct> ways;
  if (CudaFewRows::takes(run, shape)) ways.emplace_back(CudaFewRows(run, shape, epilogue));
  if (CudaGroupMatMul::takes(run, shape)) {
    for (const GroupMatMulTile& tile : CudaGroupMatMul::tiles(shape, queue_of(run).gpu().processors()))
      ways.emplace_back(CudaGroupMatMul(run, shape, epilogue, tile));
  }
  return ways;
}

std::vector<CudaOwnProduct> own_products_of_pixels(KernelRun& run, const MatMulShape& shape,
                                                   const CudaEpilogue& epilogue, bool leaves_rest) {
  std::vector<CudaOwnProduct> ways = own_products(run, shape, epilogue);
  if (CudaPixelProduct::takes(run, shape, leaves_rest)) {
    for (int64_t tile : CudaPixelProduct::tiles(shape)) ways.emplace_back(CudaPixelProduct(run, shape, epilogue, tile));
  }
  if (CudaStreamedProduct::takes(run, shape)) ways.emplace_back(CudaStreamedProduct(run, shape, epilogue));
  return ways;
}

}  // namespace tenon::ops

#include <optional>

#include "ops/cuda_support/arguments.h"
#include "ops/cuda_support/loop.h"

namespace tenon::ops {
namespace {

// A block for each matrix: Gaussian elimination with row exchanges, in a copy.
constexpr std::string_view text = R"cuda(
  const int n = (int)v[0], lane = threadIdx.x, step = blockDim.x;
  A* const rows = work + (i64)blockIdx.x * n * n;
  for (int at = lane; at < n * n; at += step) rows[at] = widen(x[(i64)blockIdx.x * n * n + at]);
  __shared__ int pivot;
  double result = 1;
  for (int c = 0; c < n; ++c) {
    __syncthreads();
    if (lane == 0) {
      pivot = c;
      for (int r = c + 1; r < n; ++r)
        if (fabs(rows[(i64)r * n + c]) > fabs(rows[(i64)pivot * n + c])) pivot = r;
    }
    __syncthreads();
    if (pivot != c) {
      for (int k = c + lane; k < n; k += step) {
        const A held = rows[(i64)c * n + k];
        rows[(i64)c * n + k] = rows[(i64)pivot * n + k];
        rows[(i64)pivot * n + k] = held;
      }
      result = -result;
    }
    __syncthreads();
    const A top = rows[(i64)c * n + c];
    result = top == 0 ? 0 : result * (double)top;
    if (top == 0) break;
    const int width = n - c - 1;
    for (int at = lane; at < width * width; at += step) {
      const int r = c + 1 + at / width, k = c + 1 + at % width;
      rows[(i64)r * n + k] -= rows[(i64)r * n + c] / top * rows[(i64)c * n + k];
    }
  }
  if (lane == 0) y[blockIdx.x] = narrow<T>(result);
)cuda";

struct Plan {
  std::shared_ptr<void> work;
  CudaBlocks blocks;
};

void run_det(KernelRun& run) {
  const Tensor& x = run.input(0);
  Tensor& y = run.output(0);
  if (y.elements() == 0) return;
  const auto& plan = run.per_plan<Plan>([&] {
    const int64_t n = x.dim(x.rank() - 1);
    cuda::Grid grid;
    grid.blocks[0] = static_cast<unsigned>(y.elements());
    grid.threads = n <= 8 ? 32 : 256;
    return Plan{queue_of(run).gpu().allocate(std::max<int64_t>(1, x.elements()) * 8),
                CudaBlocks(run, "const T* x, A* work, T* y", types_text(x.type()), text, {n}, grid)};
  });
  plan.blocks.run(run, {x.raw(), plan.work.get(), y.raw()});
}

}  // namespace

void cuda_det(CudaKernels& list) { list.add_simple("Det", run_det, {.types = types::floats}); }

}  // namespace tenon::ops

#include <algorithm>
#include <cmath>
#include <vector>

#include "ops/cpu_support/compute_type.h"
#include "provider/cpu_kernels.h"

namespace tenon::ops {
namespace {

// Gaussian elimination with row exchanges; destroys the matrix.
double determinant(double* a, int64_t n) {
  double result = 1;
  for (int64_t c = 0; c < n; ++c) {
    int64_t pivot = c;
    for (int64_t r = c + 1; r < n; ++r) {
      if (std::fabs(a[r * n + c]) > std::fabs(a[pivot * n + c])) pivot = r;
    }
    if (a[pivot * n + c] == 0) return 0;
    if (pivot != c) {
      std::swap_ranges(a + c * n, a + (c + 1) * n, a + pivot * n);
      result = -result;
    }
    result *= a[c * n + c];
    for (int64_t r = c + 1; r < n; ++r) {
      const double factor = a[r * n + c] / a[c * n + c];
      for (int64_t k = c + 1; k < n; ++k) a[r * n + k] -= factor * a[c * n + k];
    }
  }
  return result;
}

void run_det(KernelRun& run) {
  const Shape& shape = run.input(0).shape();
  const int64_t n = shape[shape.rank() - 1], count = run.output(0).elements();
  ComputeArguments<double> arguments(run);
  const double* x = arguments.in(0);
  double* y = arguments.out(0);
  run.threads().parallel_for(count, 1 + (16 << 10) / (n * n * n + 1), [&](int64_t begin, int64_t end) {
    std::vector<double> matrix(static_cast<size_t>(n * n));
    for (int64_t i = begin; i < end; ++i) {
      std::copy_n(x + i * n * n, n * n, matrix.data());
      y[i] = determinant(matrix.data(), n);
    }
  });
  arguments.finish();
}

}  // namespace

void cpu_det(CpuKernels& list) { list.add_simple("Det", run_det); }

}  // namespace tenon::ops

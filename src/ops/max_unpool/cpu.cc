#include <cstring>

#include "ops/dispatch.h"
#include "ops/window.h"
#include "provider/cpu_kernels.h"

namespace tenon::ops {
namespace {

// Indices count the elements of the smallest image that pools to X; output_shape may ask for a larger one, of which
// that image is the corner.
void run_max_unpool(KernelRun& run) {
  const Tensor& x = run.input(0);
  Tensor& y = run.output(0);
  auto indices = run.data<int64_t>(1);
  std::memset(y.mutable_raw(), 0, static_cast<size_t>(y.bytes()));
  const WindowAttributes window(run.node());
  const int spatial = x.rank() - 2;
  Shape pooled{x.dim(0), x.dim(1)};
  for (int d = 0; d < spatial; ++d) pooled.push_back(window.axis(d, spatial).transposed_output(x.dim(d + 2)).value());
  for (int64_t size : pooled) {
    if (size < 0) fail(ErrorCode::shape_mismatch, "the padding leaves an image of shape {}", pooled.to_string());
  }
  const int64_t total = pooled.elements();
  const bool same = pooled == y.shape();
  dispatch_width(x.type(), [&]<typename T>() {
    if constexpr (!std::is_same_v<T, std::string>) {
      const T* from = static_cast<const T*>(x.raw());
      T* to = static_cast<T*>(y.mutable_raw());
      for (int64_t i = 0; i < x.elements(); ++i) {
        const int64_t index = indices[static_cast<size_t>(i)];
        if (index < 0 || index >= total)
          fail(ErrorCode::invalid_value, "index {} is out of range for an image of shape {}", index,
               pooled.to_string());
        if (same) {
          to[index] = from[i];
          continue;
        }
        int64_t rest = index, at = 0, step = 1;
        for (int axis = x.rank() - 1; axis >= 0; --axis) {
          if (rest % pooled[axis] >= y.dim(axis)) {
            fail(ErrorCode::invalid_value, "index {} lies outside the output of shape {}", index,
                 y.shape().to_string());
          }
          at += rest % pooled[axis] * step;
          rest /= pooled[axis];
          step *= y.dim(axis);
        }
        to[at] = from[i];
      }
    }
  });
}

}  // namespace

void cpu_max_unpool(CpuKernels& list) { list.add_simple("MaxUnpool", run_max_unpool); }

}  // namespace tenon::ops

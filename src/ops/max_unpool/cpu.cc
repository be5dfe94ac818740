#include <algorithm>
#include <atomic>

#include "ops/dispatch.h"
#include "ops/window.h"
#include "provider/cpu_kernels.h"

namespace tenon::ops {
namespace {

// Elements of a plane at their places in an image of zeros; false where one of them lies elsewhere.
template <typename T>
bool unpool_plane(const T* from, const int64_t* indices, int64_t count, int64_t first, T* to, int64_t size) {
  std::fill_n(to, size, T{});
  for (int64_t i = 0; i < count; ++i) {
    const auto at = static_cast<uint64_t>(indices[i] - first);
    if (at >= static_cast<uint64_t>(size)) return false;
    to[at] = from[i];
  }
  return true;
}

// Whether the elements of each plane of x lie in the same plane of y: then planes are unpooled one by one.
template <typename T>
bool unpool_planes(KernelRun& run, const Tensor& x, const int64_t* indices, Tensor& y) {
  constexpr int64_t bytes_per_task = 64 << 10;
  const int64_t planes = x.dim(0) * x.dim(1), count = x.elements() / planes, size = y.elements() / planes;
  const T* from = static_cast<const T*>(x.raw());
  T* to = static_cast<T*>(y.mutable_raw());
  std::atomic<bool> all_inside = true;
  run.threads().parallel_for(planes, 1 + bytes_per_task / (y.bytes() / planes + 1), [&](int64_t begin, int64_t end) {
    for (int64_t plane = begin; plane < end; ++plane) {
      const int64_t at = plane * count, first = plane * size;
      if (!unpool_plane(from + at, indices + at, count, first, to + first, size)) all_inside = false;
    }
  });
  return all_inside;
}

// Elements anywhere in an image of shape `pooled`, of which y is as large or larger.
template <typename T>
void unpool(const Tensor& x, const int64_t* indices, const Shape& pooled, Tensor& y) {
  const T* from = static_cast<const T*>(x.raw());
  T* to = static_cast<T*>(y.mutable_raw());
  std::fill_n(to, y.elements(), T{});
  const int64_t total = pooled.elements();
  const bool same = pooled == y.shape();
  for (int64_t i = 0; i < x.elements(); ++i) {
    const int64_t index = indices[i];
    if (index < 0 || index >= total)
      fail(ErrorCode::invalid_value, "index {} is out of range for an image of shape {}", index, pooled.to_string());
    if (same) {
      to[index] = from[i];
      continue;
    }
    int64_t rest = index, at = 0, step = 1;
    for (int axis = x.rank() - 1; axis >= 0; --axis) {
      if (rest % pooled[axis] >= y.dim(axis))
        fail(ErrorCode::invalid_value, "index {} lies outside the output of shape {}", index, y.shape().to_string());
      at += rest % pooled[axis] * step;
      rest /= pooled[axis];
      step *= y.dim(axis);
    }
    to[at] = from[i];
  }
}

// Indices count the elements of the smallest image that pools to X; output_shape may ask for a larger one, of which
// that image is the corner.
void run_max_unpool(KernelRun& run) {
  const Tensor& x = run.input(0);
  Tensor& y = run.output(0);
  const int64_t* indices = run.data<int64_t>(1).data();
  const WindowAttributes window(run.node());
  const int spatial = x.rank() - 2;
  Shape pooled{x.dim(0), x.dim(1)};
  for (int d = 0; d < spatial; ++d) pooled.push_back(window.axis(d, spatial).transposed_output(x.dim(d + 2)).value());
  for (int64_t size : pooled) {
    if (size < 0) fail(ErrorCode::shape_mismatch, "the padding leaves an image of shape {}", pooled.to_string());
  }
  dispatch_width(x.type(), [&]<typename T>() {
    if constexpr (!std::is_same_v<T, std::string>) {
      const bool fits = pooled == y.shape() && x.elements() > 0;
      if (!fits || !unpool_planes<T>(run, x, indices, y)) unpool<T>(x, indices, pooled, y);
    }
  });
}

}  // namespace

void cpu_max_unpool(CpuKernels& list) { list.add_simple("MaxUnpool", run_max_unpool); }

}  // namespace tenon::ops

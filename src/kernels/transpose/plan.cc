#include "kernels/transpose/plan.h"

#include <bit>

namespace tenon::kernels {
namespace {

// Sets the output's strides, which are dense in the order of the axes.
void number_outputs(std::vector<TransposePlan::Axis>& axes) {
  int64_t stride = 1;
  for (auto axis = axes.rbegin(); axis != axes.rend(); ++axis) {
    axis->to_stride = stride;
    stride *= axis->size;
  }
}

}  // namespace

TransposePlan::TransposePlan(std::span<const int64_t> dims, std::span<const int64_t> permutation, size_t bytes)
    : element_bytes(bytes) {
  std::vector<int64_t> strides(dims.size());
  int64_t stride = 1;
  for (size_t i = dims.size(); i-- > 0;) {
    strides[i] = stride;
    stride *= dims[i];
  }
  for (const int64_t source : permutation) {
    const auto i = static_cast<size_t>(source);
    if (dims[i] == 1) continue;
    if (!axes.empty() && axes.back().from_stride == strides[i] * dims[i]) {
      axes.back().size *= dims[i];
      axes.back().from_stride = strides[i];
    } else {
      axes.push_back({dims[i], strides[i], 0});
    }
  }
  if (!axes.empty() && axes.back().from_stride == 1) {
    const size_t run = static_cast<size_t>(axes.back().size) * bytes;
    if (run <= 16 && std::has_single_bit(run)) {
      const int64_t size = axes.back().size;
      axes.pop_back();
      for (Axis& axis : axes) axis.from_stride /= size;
      element_bytes = run;
    }
  }
  number_outputs(axes);
}

}  // namespace tenon::kernels

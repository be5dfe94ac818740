// Scales and zero points as this folder's kernels read them.
#pragma once

#include "base/fail.h"
#include "provider/kernel.h"

namespace tenon::ops {

// The one scale that input i holds.
inline float scale_of(KernelRun& run, size_t i) {
  if (run.input(i).elements() != 1)
    fail(ErrorCode::shape_mismatch, "input {} has {} elements; it must have 1", i, run.input(i).elements());
  return run.data<float>(i)[0];
}

// The one zero point that input i holds, or 0 where it is left out.
template <typename T>
int32_t zero_of(KernelRun& run, size_t i) {
  if (!run.has_input(i)) return 0;
  if (run.input(i).elements() != 1)
    fail(ErrorCode::shape_mismatch, "input {} has {} elements; it must have 1", i, run.input(i).elements());
  return run.data<T>(i)[0];
}

}  // namespace tenon::ops

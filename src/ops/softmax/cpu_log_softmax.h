#pragma once

#include "base/thread_pool.h"
#include "ops/cpu_support/axis_view.h"

namespace tenon::ops {

// The logarithm of the softmax over the view's axis; y may not be x.
void log_softmax(ThreadPool& threads, const float* x, float* y, const AxisView& view);
void log_softmax(ThreadPool& threads, const double* x, double* y, const AxisView& view);

}  // namespace tenon::ops

#pragma once

#include "kernels/conv_blocked/conv_blocked.h"

namespace tenon::kernels {

// conv_blocked where each channel is a group.
void conv_blocked_depthwise(ThreadPool& pool, const ConvShape& shape, const float* x, const BlockedConvWeights& weights,
                            float* y, const ConvEpilogue& epilogue);

}  // namespace tenon::kernels

#pragma once

#include "kernels/conv_blocked/conv_blocked.h"

namespace tenon::kernels {

// conv_blocked where each channel is a group.
template <class Number>
void conv_blocked_depthwise(ThreadPool& pool, const ConvShape& shape, const Number* x,
                            const ConvWeightsInBlocks<Number>& weights, Number* y, const EpilogueOf<Number>& epilogue);

}  // namespace tenon::kernels

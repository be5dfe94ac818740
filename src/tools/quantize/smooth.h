// SmoothQuant: what channels of activations differ by goes into the weights that they are multiplied with.
#pragma once

#include "tools/quantize/calibrate.h"
#include "tools/quantize/plan.h"

namespace tenon::tools {

// The activations whose channels have to be known.
Wanted channels_to_smooth(const Plan& plan);

// The model with each activation of MatMul and Gemm divided by a factor for each channel, and the weights multiplied
// with it. The factor is (largest activation)^smooth / (largest weight)^(1 - smooth); it goes into the
// LayerNormalization before where there is one, else into a Mul.
std::unique_ptr<ir::Model> smoothed(const ir::Model& model, const KnownTypes& types, const QuantizeOptions& options,
                                    const std::map<std::string, ChannelStatistics, std::less<>>& channels);

}  // namespace tenon::tools

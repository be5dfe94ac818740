#pragma once

#include "tenon/tools/quantize.h"

namespace tenon::tools {

// Weights and activations in integers. Fills all of the report but the sizes.
void quantize_static(const OnnxModel& model, const QuantizeOptions& options, const QuantizeData& data,
                     QuantizeReport& report);

}  // namespace tenon::tools

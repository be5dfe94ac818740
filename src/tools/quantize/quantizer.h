#pragma once

#include "tenon/tools/quantize.h"

namespace tenon::tools {

// Makes the model and all of the report but the sizes. There is calibration data.
void fill_report(const OnnxModel& model, const QuantizeOptions& options, const QuantizeData& data,
                 QuantizeReport& report);

}  // namespace tenon::tools

#pragma once

#include <map>
#include <string>

#include "tools/quantize/plan.h"

namespace tenon::tools {

// The SQNR, in dB, of what the quantized products of a plan make in the quantized model, by their names.
std::map<std::string, double> layer_errors(const OnnxModel& original, const OnnxModel& quantized, const Plan& plan,
                                           const NamedValues& sample);

}  // namespace tenon::tools

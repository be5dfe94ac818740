#pragma once

#include <string>

#include "base/cpu_features.h"

namespace tenon {

// Those of the processor's instruction sets that Tenon knows, such as "neon fp16"; empty if there is none.
std::string feature_names(const CpuFeatures& features);

}  // namespace tenon

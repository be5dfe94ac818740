// Asks the processor and the operating system for instruction sets.
#pragma once

#include "base/cpu_features.h"

namespace tenon {

// Sets the instruction-set flags of `features`.
void probe_instruction_sets(CpuFeatures& features);

}  // namespace tenon

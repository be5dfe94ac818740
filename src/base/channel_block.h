#pragma once

#include "base/cpu_features.h"

namespace tenon {

// The channels that lie side by side in blocked layouts: what fills the registers of this instruction set.
constexpr int channel_block(Isa isa) { return isa == Isa::avx512 ? 16 : 8; }

}  // namespace tenon

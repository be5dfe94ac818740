#pragma once

#include "base/cpu_features.h"

namespace tenon {

// The channels that lie side by side in blocked layouts: what fills the registers of this instruction set.
constexpr int channel_block(Isa isa) { return isa == Isa::avx512 ? 16 : 8; }

// Whether the instruction set in use has arithmetic of half precision.
inline bool has_half_arithmetic() { return best_isa() == Isa::neon && cpu_features().fp16; }

// The same for numbers of half precision; 0 where there is no arithmetic for them.
inline int half_channel_block() { return has_half_arithmetic() ? 16 : 0; }

}  // namespace tenon

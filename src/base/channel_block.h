#pragma once

#include "base/cpu_features.h"

namespace tenon {

// The channels that lie side by side in blocked layouts: what fills the registers of this instruction set.
constexpr int channel_block(Isa isa) { return isa == Isa::avx512 ? 16 : 8; }

// The same for numbers of half precision, with the instruction set in use; 0 where it has no arithmetic for them.
inline int half_channel_block() { return best_isa() == Isa::neon && cpu_features().fp16 ? 16 : 0; }

}  // namespace tenon

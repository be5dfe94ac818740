#pragma once

#include <cstdint>

namespace tenon::ops {

// The largest stride of BlockedConvTranspose: each makes as many parts of a kernel.
inline constexpr int64_t most_transposed_stride = 8;

}  // namespace tenon::ops

#pragma once

#include "base/cpu_features.h"

namespace tenon {

// Whether images of bytes are convolved fastest with their channels last: where products of bytes are summed four at a
// time.
inline bool prefers_channels_last() {
#if defined(__aarch64__)
  return best_isa() == Isa::neon && cpu_features().dotprod;
#elif defined(__x86_64__)
  return best_isa() == Isa::avx2 || best_isa() == Isa::avx512;
#else
  return false;
#endif
}

}  // namespace tenon

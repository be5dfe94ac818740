#include "kernels/half/arithmetic.h"

#include "base/cpu_features.h"

namespace tenon::kernels {

#if defined(__aarch64__)
bool has_half_arithmetic() { return best_isa() == Isa::neon && cpu_features().fp16; }
void f16_arithmetic(HalfOperation operation, const HalfRows& rows) { f16_arithmetic_neon_fp16(operation, rows); }
#else
bool has_half_arithmetic() { return false; }
void f16_arithmetic(HalfOperation /*operation*/, const HalfRows& /*rows*/) {}
#endif

}  // namespace tenon::kernels

#include "kernels/half/arithmetic.h"

namespace tenon::kernels {

#if defined(__aarch64__)
void f16_arithmetic(HalfOperation operation, const HalfRows& rows) { f16_arithmetic_neon_fp16(operation, rows); }
#else
void f16_arithmetic(HalfOperation /*operation*/, const HalfRows& /*rows*/) {}
#endif

}  // namespace tenon::kernels

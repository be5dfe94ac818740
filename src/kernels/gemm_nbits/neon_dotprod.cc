#include "kernels/gemm_nbits/neon_codes.h"

namespace tenon::kernels {

constexpr NbitsKernels nbits_kernels_neon_dotprod = NbitsTiles<NbitsNeon>::table("neon_dotprod");

}  // namespace tenon::kernels

#include "kernels/gemm_nbits/vnni_codes.h"

namespace tenon::kernels {

constexpr NbitsKernels nbits_kernels_avx512_vnni = NbitsTiles<NbitsVnni<2>>::table("avx512_vnni");

}  // namespace tenon::kernels

#include "kernels/random/philox_rounds.h"

namespace tenon::kernels {

constexpr PhiloxKernels philox_kernels_neon = {Isa::neon, philox_words_in_loops<8>};

}  // namespace tenon::kernels

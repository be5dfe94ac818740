#include "kernels/chain/chain.h"

namespace tenon::kernels {

void f32_chain(const float* x, std::span<const ChainStep> steps, float* y, int64_t n) {
  chain_kernels().run(x, steps, y, n);
}

}  // namespace tenon::kernels

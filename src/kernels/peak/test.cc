#include <gtest/gtest.h>

#include <vector>

#include "kernels/peak/peak.h"

namespace tenon::kernels {
namespace {

TEST(Peak, LoopsDoTheirWork) {
  const std::vector<float> ones(4096, 1.0f);
  for (Isa isa : available_isas(cpu_features())) {
    const ScopedIsa scoped(isa);
    const PeakKernels& kernels = peak_kernels();
    EXPECT_EQ(kernels.isa, isa);
    EXPECT_EQ(kernels.read(ones.data(), 4096), 4096.0f) << isa_name(isa);
    // Every sum grows by factor * (factor + 1).
    const int64_t lanes = kernels.flops_per_step / 2;
    const float once = kernels.multiply_add(1, 0.5f), never = kernels.multiply_add(0, 0.5f);
    EXPECT_EQ(once, never + 0.75f * static_cast<float>(lanes)) << isa_name(isa);
  }
}

TEST(Peak, RatesArePositive) {
  EXPECT_GT(peak_flops(), 0);
  EXPECT_GT(peak_read_bytes(), 0);
}

}  // namespace
}  // namespace tenon::kernels

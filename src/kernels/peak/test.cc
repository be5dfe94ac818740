#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <vector>

#include "kernels/peak/peak.h"

namespace tenon::kernels {
namespace {

TEST(Peak, LoopsDoTheirWork) {
  const std::vector<float> ones(4096, 1.0f), factors(32, 0.5f);
  for (Isa isa : available_isas(cpu_features())) {
    const ScopedIsa scoped(isa);
    const PeakKernels& kernels = peak_kernels();
    EXPECT_EQ(kernels.isa, isa);
    EXPECT_EQ(kernels.read(ones.data(), 4096), 4096.0f) << isa_name(isa);
    // Every sum grows by 0.5 * 0.5.
    const int64_t lanes = kernels.flops_per_step / 2;
    const float once = kernels.multiply_add(1, factors.data()), never = kernels.multiply_add(0, factors.data());
    EXPECT_EQ(once, never + 0.25f * static_cast<float>(lanes)) << isa_name(isa);
  }
}

TEST(Peak, WorkIsSharedAndCounted) {
  constexpr int64_t blocks = 5, floats = blocks * peak_block_bytes / 4;
  std::vector<float> from(floats, 2.0f), to(floats, 0.0f);
  for (int threads : {1, 3}) {
    ThreadPool pool(threads);
    std::ranges::fill(to, 0.0f);
    EXPECT_EQ(read_all(pool, from.data(), blocks), blocks * peak_block_bytes);
    EXPECT_EQ(copy_all(pool, from.data(), to.data(), blocks), 2 * blocks * peak_block_bytes);
    EXPECT_EQ(to, from);
    EXPECT_EQ(multiply_add_all(pool), threads * multiply_add_all(*std::make_unique<ThreadPool>(1)));
  }
}

TEST(Peak, ARateTakesTwoCallsAtLeast) {
  int calls = 0;
  EXPECT_GT(best_rate(0, [&] { return ++calls; }), 0);
  EXPECT_EQ(calls, 2);
}

TEST(Peak, RatesArePositive) {
  EXPECT_GT(peak_flops(), 0);
  EXPECT_GT(peak_read_bytes(), 0);
}

}  // namespace
}  // namespace tenon::kernels

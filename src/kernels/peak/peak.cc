#include "kernels/peak/peak.h"

#include <algorithm>
#include <chrono>
#include <vector>

#include "base/function_ref.h"
#include "kernels/scratch.h"

namespace tenon::kernels {
namespace {

// Amounts of work a second, the most of some calls.
double best_rate(int calls, double work, FunctionRef<float()> call) {
  volatile float kept = 0;
  double best = 0;
  for (int i = 0; i < calls; ++i) {
    const auto begin = std::chrono::steady_clock::now();
    kept = call();
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
    best = std::max(best, work / seconds.count());
  }
  static_cast<void>(kept);
  return best;
}

}  // namespace

double peak_flops() {
  const PeakKernels& kernels = peak_kernels();
  constexpr int64_t steps = 50'000;
  const std::vector<float> factors(32, 0.5f);
  return best_rate(10, static_cast<double>(steps * kernels.flops_per_step),
                   [&] { return kernels.multiply_add(steps, factors.data()); });
}

double peak_read_bytes() {
  constexpr int64_t floats = 64 << 20;
  const AlignedBuffer buffer(floats * sizeof(float));
  std::fill_n(buffer.as<float>(), floats, 1.0f);
  return best_rate(3, floats * sizeof(float), [&] { return peak_kernels().read(buffer.as<float>(), floats); });
}

}  // namespace tenon::kernels

#include "kernels/peak/peak.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <vector>

#include "kernels/scratch.h"

namespace tenon::kernels {
namespace {

// Where loops leave what they return, so that none of them is left out.
std::atomic<float> kept;

constexpr int64_t block = peak_block_bytes / static_cast<int64_t>(sizeof(float));

}  // namespace

double best_rate(double seconds, FunctionRef<double()> call) {
  using Clock = std::chrono::steady_clock;
  const auto since = [](Clock::time_point begin) {
    return std::chrono::duration<double>(Clock::now() - begin).count();
  };
  const Clock::time_point start = Clock::now();
  double best = 0;
  for (int calls = 0; calls < 2 || since(start) < seconds; ++calls) {
    const Clock::time_point begin = Clock::now();
    const double work = call();
    best = std::max(best, work / since(begin));
  }
  return best;
}

double multiply_add_all(ThreadPool& pool) {
  const PeakKernels& kernels = peak_kernels();
  constexpr int64_t steps = 25'000;
  const int64_t parts = int64_t{4} * pool.size();
  const std::vector<float> factors(32, 0.5f);
  pool.parallel_for(parts, 1, [&](int64_t begin, int64_t end) {
    kept = kernels.multiply_add((end - begin) * steps, factors.data());
  });
  return static_cast<double>(parts * steps * kernels.flops_per_step);
}

double read_all(ThreadPool& pool, const float* data, int64_t blocks) {
  pool.parallel_for(blocks, 1, [&](int64_t begin, int64_t end) {
    kept = peak_kernels().read(data + begin * block, (end - begin) * block);
  });
  return static_cast<double>(blocks * block) * sizeof(float);
}

double copy_all(ThreadPool& pool, const float* from, float* to, int64_t blocks) {
  pool.parallel_for(blocks, 1, [&](int64_t begin, int64_t end) {
    std::memcpy(to + begin * block, from + begin * block, static_cast<size_t>((end - begin) * block) * sizeof(float));
  });
  return 2.0 * static_cast<double>(blocks * block) * sizeof(float);
}

double peak_flops() {
  ThreadPool one(1);
  return best_rate(0.005, [&] { return multiply_add_all(one); });
}

double peak_read_bytes() {
  constexpr int64_t blocks = 1024;
  const AlignedBuffer buffer(blocks * peak_block_bytes);
  std::fill_n(buffer.as<float>(), blocks * block, 1.0f);
  ThreadPool one(1);
  return best_rate(0.05, [&] { return read_all(one, buffer.as<float>(), blocks); });
}

}  // namespace tenon::kernels

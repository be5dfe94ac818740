#include "tenon/tools/measure_machine.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <vector>

#include "base/available_memory.h"
#include "base/cpu_features.h"
#include "kernels/gemm/gemm.h"
#include "kernels/peak/peak.h"

namespace tenon::tools {
namespace {

constexpr double seconds_each = 0.2;

// Twice as much as all caches hold together, so that none helps.
int64_t memory_to_use() {
  constexpr int64_t least = int64_t{128} << 20, most = int64_t{1} << 30;
  const int64_t caches = cpu_features().l3_bytes * std::max(1L, sysconf(_SC_NPROCESSORS_ONLN));
  const int64_t wanted = std::min(std::clamp(2 * caches, least, most), available_memory() / 8);
  const int64_t pair = 2 * kernels::peak_block_bytes;
  return std::max(wanted / pair * pair, pair);
}

// Short enough that other processes leave some calls alone, and as much work for each thread however many there are.
double matmul_flops(ThreadPool& pool) {
  constexpr int64_t n = 512;
  const int64_t rows = n * pool.size();
  std::vector<float> a(static_cast<size_t>(rows * n), 1.0f), b(n * n, 0.5f), c(static_cast<size_t>(rows * n));
  const kernels::PackedMatrix packed(pool, kernels::GemmSide::right, n, n, {b.data(), n});
  return kernels::best_rate(seconds_each, [&] {
    kernels::gemm(pool, rows, {a.data(), n}, packed, c.data(), n);
    return 2.0 * static_cast<double>(rows) * n * n;
  });
}

MachineSpeed::Rates measure(ThreadPool& pool, float* memory, int64_t blocks) {
  const ThreadPool::Run run(pool);
  const int64_t half = blocks / 2;
  float* second_half = memory + half * kernels::peak_block_bytes / static_cast<int64_t>(sizeof(float));
  MachineSpeed::Rates rates;
  rates.threads = pool.size();
  rates.peak_flops = kernels::best_rate(seconds_each, [&] { return kernels::multiply_add_all(pool); });
  rates.matmul_flops = matmul_flops(pool);
  rates.read_bandwidth = kernels::best_rate(seconds_each, [&] { return kernels::read_all(pool, memory, blocks); });
  rates.copy_bandwidth =
      kernels::best_rate(seconds_each, [&] { return kernels::copy_all(pool, memory, second_half, half); });
  rates.peak_bandwidth = std::max(rates.read_bandwidth, rates.copy_bandwidth);
  return rates;
}

}  // namespace

MachineSpeed measure_machine(int threads) {
  const auto start = std::chrono::steady_clock::now();
  MachineSpeed speed;
  speed.memory_bytes = memory_to_use();
  const kernels::AlignedBuffer memory(static_cast<size_t>(speed.memory_bytes));
  std::fill_n(memory.as<float>(), memory.size() / sizeof(float), 1.0f);
  const int64_t blocks = speed.memory_bytes / kernels::peak_block_bytes;
  ThreadPool all(threads), one(1);
  speed.one = measure(one, memory.as<float>(), blocks);
  speed.all = all.size() == 1 ? speed.one : measure(all, memory.as<float>(), blocks);
  speed.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return speed;
}

}  // namespace tenon::tools

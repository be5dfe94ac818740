#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "tools/machine_facts.h"

namespace tenon::tools {
namespace {

constexpr int64_t megabyte = 1 << 20;

// Each says what is wrong and what to do about it, or "".
using Rule = std::string (*)(const MachineFacts&);

std::string build_is_slow(const MachineFacts& m) {
  if (!m.sanitizers.empty())
    return fmt::format(
        "this build has the {} sanitizer, which makes it many times slower: build without TENON_SANITIZE",
        m.sanitizers);
  return m.is_optimized ? "" : "this is a debug build, many times slower: build with -DCMAKE_BUILD_TYPE=Release";
}

std::string cpu_is_old(const MachineFacts& m) {
#if defined(__x86_64__)
  if (!m.cpu.avx2)
    return "this CPU (or its virtual machine) has no AVX2: kernels are several times slower; choose a machine that has "
           "it";
#elif defined(__aarch64__)
  if (!m.cpu.dotprod)
    return "this CPU has no dotprod instructions: quantized models are slower than others; choose a newer machine for "
           "them";
#endif
  return m.isa == Isa::portable ? "kernels use no vector instructions of this CPU: they are many times slower" : "";
}

std::string isa_is_held_back(const MachineFacts& m) {
  const Isa best = available_isas(m.cpu).back();
  if (m.isa >= best || m.isa == Isa::portable) return "";
  return fmt::format("TENON_ISA holds kernels to {} where this CPU has {}: unset it", isa_name(m.isa), isa_name(best));
}

std::string more_threads_than_cpus(const MachineFacts& m) {
  const int64_t quota = m.cgroup.cpus > 0 ? static_cast<int64_t>(std::ceil(m.cgroup.cpus)) : m.usable_cpus;
  const int64_t cpus = std::min(quota, m.usable_cpus);
  if (!m.threads_wanted || *m.threads_wanted <= cpus) return "";
  return fmt::format(
      "TENON_THREADS asks for {} threads where this process may use {} CPUs, so they wait for each other: unset it, or "
      "set it to {}",
      *m.threads_wanted, cpus, cpus);
}

std::string quota_is_below_cpus(const MachineFacts& m) {
  if (m.cgroup.cpus <= 0 || m.cgroup.cpus >= static_cast<double>(m.usable_cpus)) return "";
  return fmt::format(
      "a CPU quota limits this process to {:g} of {} CPUs: raise the container's CPU limit if that is not enough",
      m.cgroup.cpus, m.usable_cpus);
}

std::string quota_is_a_fraction(const MachineFacts& m) {
  if (m.cgroup.cpus <= 0 || m.cgroup.cpus == std::floor(m.cgroup.cpus) || m.threads <= m.cgroup.cpus) return "";
  return fmt::format(
      "the CPU quota of {:g} is no whole number, so {} threads are stopped now and then: make it {}, or set "
      "TENON_THREADS={}",
      m.cgroup.cpus, m.threads, std::ceil(m.cgroup.cpus), std::max(1.0, std::floor(m.cgroup.cpus)));
}

std::string is_throttled(const MachineFacts& m) {
  if (m.cgroup.periods == 0 || m.cgroup.throttled * 20 < m.cgroup.periods) return "";
  return fmt::format("the CPU quota ran out in {} of {} periods: raise the container's CPU limit, or use fewer threads",
                     m.cgroup.throttled, m.cgroup.periods);
}

std::string threads_are_fewer(const MachineFacts& m) {
  if (!m.threads_wanted || *m.threads_wanted >= m.usable_cpus) return "";
  return fmt::format("TENON_THREADS limits this process to {} of {} CPUs: unset it to use all", *m.threads_wanted,
                     m.usable_cpus);
}

std::string governor_saves_power(const MachineFacts& m) {
  if (m.governor != "powersave" && m.governor != "conservative" && m.governor != "ondemand") return "";
  return fmt::format(
      "the CPU's governor is {}, so short runs are measured at a low frequency: cpupower frequency-set -g performance",
      m.governor);
}

// What is measured then says little.
bool is_busy(const MachineFacts& m) { return m.cpus > 0 && m.load >= 1.5 * static_cast<double>(m.cpus); }

std::string machine_is_busy(const MachineFacts& m) {
  if (!is_busy(m)) return "";
  return fmt::format(
      "{:g} processes wanted to run on {} CPUs in the last minute: expect slow runs, and measure when it is quiet",
      m.load, m.cpus);
}

std::string memory_is_short(const MachineFacts& m) {
  const int64_t least = std::max(m.memory / 20, 256 * megabyte);
  if (m.memory == 0 || m.available >= least) return "";
  return fmt::format("only {} MB of memory are available: end other programs, or load models with --memory low",
                     m.available / megabyte);
}

std::string group_memory_is_short(const MachineFacts& m) {
  if (m.cgroup.memory_limit == 0 || m.cgroup.memory_used < m.cgroup.memory_limit / 10 * 9) return "";
  return fmt::format("{} of the {} MB that the container may use are in use: raise its memory limit",
                     m.cgroup.memory_used / megabyte, m.cgroup.memory_limit / megabyte);
}

std::string swap_is_in_use(const MachineFacts& m) {
  if (m.swap == 0 || m.swap_free > m.swap / 2) return "";
  return "more than half of the swap space is in use: models that were swapped out run very slowly; free memory";
}

std::string huge_pages_are_off(const MachineFacts& m) {
  if (m.huge_pages.find("[never]") == std::string::npos) return "";
  return "huge pages are off, so large tensors take longer to reach: echo madvise > "
         "/sys/kernel/mm/transparent_hugepage/enabled";
}

std::string denormals_are_flushed(const MachineFacts& m) {
  if (!m.flushes_denormals) return "";
  return "this process takes tiny numbers as zero, perhaps because a library in it was built with -ffast-math: results "
         "may differ from those elsewhere; see LD_PRELOAD";
}

std::string threads_do_not_help(const MachineFacts& m) {
  if (!m.speed || m.speed->all.threads < 2 || is_busy(m)) return "";
  const double share = m.speed->all.peak_flops / (m.speed->one.peak_flops * m.speed->all.threads);
  if (share >= 0.6) return "";
  return fmt::format(
      "{} threads reach {:.1f} times the speed of one: CPUs are shared with other work, throttled, or two to a "
      "core; fewer threads may be as fast",
      m.speed->all.threads, share * m.speed->all.threads);
}

std::string products_are_slow(const MachineFacts& m) {
  if (!m.speed || is_busy(m) || m.speed->one.matmul_flops >= 0.5 * m.speed->one.peak_flops) return "";
  return fmt::format(
      "a matrix product reaches {:.0f} % of what this CPU can do: if nothing else runs on the machine, please report "
      "it",
      100 * m.speed->one.matmul_flops / m.speed->one.peak_flops);
}

constexpr Rule rules[] = {build_is_slow,        cpu_is_old,          isa_is_held_back,      more_threads_than_cpus,
                          quota_is_below_cpus,  quota_is_a_fraction, is_throttled,          threads_are_fewer,
                          governor_saves_power, machine_is_busy,     memory_is_short,       group_memory_is_short,
                          swap_is_in_use,       huge_pages_are_off,  denormals_are_flushed, threads_do_not_help,
                          products_are_slow};

}  // namespace

std::vector<std::string> warnings_of(const MachineFacts& facts) {
  std::vector<std::string> warnings = facts.env_problems;
  for (const Rule rule : rules) {
    if (std::string warning = rule(facts); !warning.empty()) warnings.push_back(std::move(warning));
  }
  return warnings;
}

}  // namespace tenon::tools

// What is known of the machine and of this process, for doctor's report and its warnings.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/cpu_features.h"
#include "tenon/tools/measure_machine.h"

namespace tenon::tools {

// Limits of the process' control group and of those above it. 0 stands for none.
struct CgroupFacts {
  int version = 0;
  std::string path;
  double cpus = 0;
  int64_t memory_limit = 0, memory_used = 0;  // of the group with the smallest limit
  int64_t periods = 0, throttled = 0;         // times in which the CPU quota held, and ran out
};

// `proc_cgroup` is the text of /proc/self/cgroup and `root` the folder where the cgroup file systems are mounted.
CgroupFacts read_cgroup(const std::string& proc_cgroup, const std::string& root);

struct MachineFacts {
  CpuFeatures cpu;
  Isa isa = Isa::portable;  // that kernels use
  int64_t cpus = 0, usable_cpus = 0;
  std::string affinity;  // "0-3,8"
  CgroupFacts cgroup;
  int threads = 0;                        // of sessions; 0 where the environment makes no sense
  std::optional<int> threads_wanted;      // by TENON_THREADS
  double load = 0;                        // average of the last minute
  int64_t memory = 0, available = 0;      // bytes
  int64_t swap = 0, swap_free = 0;        // the same
  std::string governor, huge_pages;       // as the system writes them; "" where it does not
  bool is_optimized = true;               // the build
  std::string sanitizers;                 // of the build; "" if there are none
  bool flushes_denormals = false;         // this thread
  std::vector<std::string> env_problems;  // what Tenon's own variables say and cannot mean
  std::optional<MachineSpeed> speed;
};

MachineFacts machine_facts();

// What is not as it should be, each with what to do about it.
std::vector<std::string> warnings_of(const MachineFacts& facts);

// The first line of a file; "" if there is none.
std::string first_line(const std::string& path);

}  // namespace tenon::tools

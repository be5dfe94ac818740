#include "tools/machine_facts.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string_view>

#include "base/available_memory.h"
#include "base/cpu_quota.h"
#include "base/environment.h"
#include "base/float_mode.h"
#include "base/thread_pool.h"
#include "tenon/error.h"

namespace tenon::tools {
namespace {

std::string text_of(const std::string& path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

// The number in a file; 0 if there is none, as where it says "max".
int64_t number_in(const std::string& path) {
  int64_t number = 0;
  return std::ifstream(path) >> number ? number : 0;
}

// The value of a line "KEY: VALUE" or "KEY VALUE"; "" if there is none.
std::string field(const std::string& text, std::string_view key) {
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with(key)) continue;
    const size_t start = line.find_first_not_of(": \t", key.size());
    return start == std::string::npos ? "" : line.substr(start);
  }
  return "";
}

int64_t kilobytes(const std::string& text, std::string_view key) { return std::atoll(field(text, key).c_str()) * 1024; }

// Where version 1 keeps what version 2 has in one folder, and what it calls it.
struct GroupFiles {
  const char *memory_folder, *memory_limit, *memory_used, *cpu_folder;
};
constexpr GroupFiles version_1 = {"/memory", "/memory.limit_in_bytes", "/memory.usage_in_bytes", "/cpu"};
constexpr GroupFiles version_2 = {"", "/memory.max", "/memory.current", ""};

// A group and those above it. In a container the path may name one that cannot be seen; the last is the mount's root.
std::vector<std::string> groups_of(std::string path) {
  std::vector<std::string> groups;
  while (!path.empty() && path != "/") {
    groups.push_back(path);
    path.resize(path.rfind('/') == std::string::npos ? 0 : path.rfind('/'));
  }
  groups.emplace_back("");
  return groups;
}

void read_group(CgroupFacts& facts, const GroupFiles& files, const std::string& root, const std::string& path) {
  constexpr int64_t no_limit = int64_t{1} << 60;
  for (const std::string& group : groups_of(path)) {
    const std::string memory = root + files.memory_folder + group;
    const int64_t limit = number_in(memory + files.memory_limit);
    if (limit > 0 && limit < no_limit && (facts.memory_limit == 0 || limit < facts.memory_limit)) {
      facts.memory_limit = limit;
      facts.memory_used = number_in(memory + files.memory_used);
    }
    const std::string cpu = text_of(root + files.cpu_folder + group + "/cpu.stat");
    if (facts.periods == 0) {
      facts.periods = std::atoll(field(cpu, "nr_periods").c_str());
      facts.throttled = std::atoll(field(cpu, "nr_throttled").c_str());
    }
  }
}

void read_build(MachineFacts& facts) {
#if !defined(__OPTIMIZE__) || !defined(NDEBUG)
  facts.is_optimized = false;
#endif
#ifdef __SANITIZE_ADDRESS__
  facts.sanitizers = "address";
#endif
#ifdef __SANITIZE_THREAD__
  facts.sanitizers = "thread";
#endif
  static_cast<void>(facts);
}

void read_environment(MachineFacts& facts) {
  try {
    facts.threads_wanted = number_in_environment("TENON_THREADS", 1);
    facts.threads = default_thread_count();
    default_spin_microseconds();
  } catch (const Error& error) {
    facts.env_problems.push_back(error.message() + "; " + error.hint());
  }
  if (!isa_error().empty()) facts.env_problems.push_back(isa_error());
}

}  // namespace

std::string first_line(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

CgroupFacts read_cgroup(const std::string& proc_cgroup, const std::string& root) {
  CgroupFacts facts;
  facts.cpus = cgroup_cpu_quota(proc_cgroup, root);
  std::istringstream lines(proc_cgroup);
  for (std::string line; std::getline(lines, line);) {
    const size_t first = line.find(':'), second = line.find(':', first == std::string::npos ? first : first + 1);
    if (second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1), path = line.substr(second + 1);
    const bool is_second = controllers.empty();
    if (!is_second && controllers.find("memory") == std::string::npos && !controllers.starts_with("cpu")) continue;
    if (facts.version == 0 || !is_second) facts.version = is_second ? 2 : 1;
    facts.path = path;
    read_group(facts, is_second ? version_2 : version_1, root, path);
  }
  return facts;
}

MachineFacts machine_facts() {
  MachineFacts facts;
  facts.cpu = cpu_features();
  facts.isa = best_wide_isa();
  facts.cpus = sysconf(_SC_NPROCESSORS_ONLN);
  facts.affinity = field(text_of("/proc/self/status"), "Cpus_allowed_list");
  facts.usable_cpus = usable_cpus();
  facts.cgroup = read_cgroup(text_of("/proc/self/cgroup"), "/sys/fs/cgroup");
  facts.load = std::atof(first_line("/proc/loadavg").c_str());
  const std::string memory = text_of("/proc/meminfo");
  facts.memory = kilobytes(memory, "MemTotal");
  facts.available = available_memory();
  facts.swap = kilobytes(memory, "SwapTotal");
  facts.swap_free = kilobytes(memory, "SwapFree");
  facts.governor = first_line("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor");
  facts.huge_pages = first_line("/sys/kernel/mm/transparent_hugepage/enabled");
  facts.flushes_denormals = with_denormals_flushed(float_mode()) == float_mode();
  read_build(facts);
  read_environment(facts);
  return facts;
}

}  // namespace tenon::tools

#include "base/cpu_quota.h"

#include <sched.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <sstream>
#include <thread>
#include <vector>

#include "base/environment.h"
#include "base/thread_pool.h"

namespace tenon {
namespace {

// CPUs of a quota and period; 0 when either is missing or says "no limit".
double quota_cpus(double quota, double period) { return quota > 0 && period > 0 ? quota / period : 0; }

double limit_v2(const std::string& folder) {
  std::ifstream file(folder + "/cpu.max");
  std::string quota;
  double period = 0;
  if (!(file >> quota >> period) || quota == "max") return 0;
  return quota_cpus(std::strtod(quota.c_str(), nullptr), period);
}

double limit_v1(const std::string& folder) {
  double quota = 0, period = 0;
  if (!(std::ifstream(folder + "/cpu.cfs_quota_us") >> quota)) return 0;
  if (!(std::ifstream(folder + "/cpu.cfs_period_us") >> period)) return 0;
  return quota_cpus(quota, period);
}

// The smallest limit of the group `path` below `mount` and of its ancestors. Inside a container the path may name a
// group that is not visible; its mount's root then holds the container's own limit.
double smallest_limit(const std::string& mount, std::string path, double (*limit)(const std::string&)) {
  double smallest = 0;
  for (;;) {
    while (!path.empty() && path.back() == '/') path.pop_back();
    const double here = limit(mount + path);
    if (here > 0) smallest = smallest > 0 ? std::min(smallest, here) : here;
    if (path.empty()) return smallest;
    path.resize(path.rfind('/') == std::string::npos ? 0 : path.rfind('/'));
  }
}

bool lists_cpu_controller(const std::string& controllers) {
  std::istringstream names(controllers);
  for (std::string name; std::getline(names, name, ',');) {
    if (name == "cpu") return true;
  }
  return false;
}

}  // namespace

int usable_cpus() {
  for (int cpus = 1024; cpus <= (1 << 20); cpus *= 2) {
    std::vector<cpu_set_t> sets((CPU_ALLOC_SIZE(cpus) + sizeof(cpu_set_t) - 1) / sizeof(cpu_set_t));
    const size_t bytes = sets.size() * sizeof(cpu_set_t);
    if (sched_getaffinity(0, bytes, sets.data()) == 0) return CPU_COUNT_S(bytes, sets.data());
  }
  return static_cast<int>(std::thread::hardware_concurrency());
}

double cgroup_cpu_quota(const std::string& proc_cgroup, const std::string& root) {
  double smallest = 0;
  std::istringstream lines(proc_cgroup);
  for (std::string line; std::getline(lines, line);) {
    const size_t first = line.find(':');
    const size_t second = first == std::string::npos ? first : line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    const std::string path = line.substr(second + 1);
    double limit = 0;
    if (controllers.empty()) {
      limit = smallest_limit(root, path, limit_v2);
    } else if (lists_cpu_controller(controllers)) {
      limit = smallest_limit(root + "/" + controllers, path, limit_v1);
      if (limit == 0) limit = smallest_limit(root + "/cpu", path, limit_v1);
    }
    if (limit > 0) smallest = smallest > 0 ? std::min(smallest, limit) : limit;
  }
  return smallest;
}

int cgroup_cpu_limit(const std::string& proc_cgroup, const std::string& root) {
  return static_cast<int>(std::ceil(std::min(cgroup_cpu_quota(proc_cgroup, root), 1e6)));
}

int default_thread_count() {
  if (std::optional<int> wish = number_in_environment("TENON_THREADS", 1)) return *wish;
  std::ifstream file("/proc/self/cgroup");
  std::ostringstream text;
  text << file.rdbuf();
  const int limit = cgroup_cpu_limit(text.str(), "/sys/fs/cgroup");
  const int count = usable_cpus();
  return std::max(1, limit > 0 ? std::min(limit, count) : count);
}

}  // namespace tenon

#include "base/available_memory.h"

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <string>

namespace tenon {

int64_t available_memory() {
  int64_t limit = INT64_MAX / 2;
  std::ifstream meminfo("/proc/meminfo");
  for (std::string line; std::getline(meminfo, line);) {
    if (line.starts_with("MemAvailable:")) limit = std::min<int64_t>(limit, std::atoll(line.c_str() + 13) * 1024);
  }
  for (const char* path : {"/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"}) {
    std::ifstream file(path);
    int64_t bytes = 0;
    if (file >> bytes && bytes > 0) limit = std::min(limit, bytes);
  }
  return limit;
}

}  // namespace tenon

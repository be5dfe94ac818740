// How many CPUs a container is allowed to use.
#pragma once

#include <string>

namespace tenon {

// The CPU limit of this process' cgroup (v1 or v2) and of the groups above it, rounded up; 0 when there is none.
// `proc_cgroup` is the text of /proc/self/cgroup and `root` the folder where the cgroup file systems are mounted.
int cgroup_cpu_limit(const std::string& proc_cgroup, const std::string& root);

}  // namespace tenon

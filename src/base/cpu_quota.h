// How many CPUs a container is allowed to use.
#pragma once

#include <string>

namespace tenon {

// CPUs that the scheduler may run this process on.
int usable_cpus();

// The CPU limit of this process' cgroup (v1 or v2) and of the groups above it; 0 when there is none.
// `proc_cgroup` is the text of /proc/self/cgroup and `root` the folder where the cgroup file systems are mounted.
double cgroup_cpu_quota(const std::string& proc_cgroup, const std::string& root);
// The same, rounded up.
int cgroup_cpu_limit(const std::string& proc_cgroup, const std::string& root);

}  // namespace tenon

#include "tenon/tools/doctor.h"

#include <fmt/core.h>
#include <sched.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>

#include "base/available_memory.h"
#include "base/cpu_feature_names.h"
#include "base/thread_pool.h"
#include "ops/image_decoder/cpu_formats.h"
#include "ops/operator.h"
#include "tenon/version.h"

namespace tenon::tools {
namespace {

std::string megabytes(int64_t bytes) { return fmt::format("{} MB", bytes >> 20); }

std::string feature_list(const CpuFeatures& cpu) {
  const std::string names = feature_names(cpu);
  return names.empty() ? "none that Tenon uses" : names;
}

std::string first_line(const char* path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

int cpus_in_affinity() {
  cpu_set_t set;
  return sched_getaffinity(0, sizeof(set), &set) == 0 ? CPU_COUNT(&set) : 0;
}

}  // namespace

DoctorReport examine_machine() {
  DoctorReport report;
  const CpuFeatures& cpu = cpu_features();
  utsname system{};
  uname(&system);

  report.sections.push_back({"Tenon",
                             {{"version", std::string(version())},
#ifdef __VERSION__
                              {"compiler", __VERSION__},
#endif
                              {"newest opset", std::to_string(ops::newest_opset)},
                              {"operators", std::to_string(ops::operators().all().size())}}});
  report.sections.push_back(
      {"System", {{"kernel", fmt::format("{} {}", system.sysname, system.release)}, {"machine", system.machine}}});
  report.sections.push_back({"CPU",
                             {{"model", cpu.model},
                              {"features", feature_list(cpu)},
                              {"kernels use", std::string(isa_name(best_isa()))},
                              {"caches per core", fmt::format("L1d {} KB, L2 {} KB, L3 {} KB", cpu.l1d_bytes >> 10,
                                                              cpu.l2_bytes >> 10, cpu.l3_bytes >> 10)}}});
  int threads = 0;
  try {
    threads = default_thread_count();
    default_spin_microseconds();
  } catch (const Error& error) {
    report.warnings.push_back(error.message());
  }
  report.sections.push_back({"Threads",
                             {{"CPUs of the machine", std::to_string(sysconf(_SC_NPROCESSORS_ONLN))},
                              {"CPUs this process may use", std::to_string(cpus_in_affinity())},
                              {"threads Tenon uses", threads > 0 ? std::to_string(threads) : "none"}}});
  report.sections.push_back({"Memory",
                             {{"available", megabytes(available_memory())},
                              {"huge pages", first_line("/sys/kernel/mm/transparent_hugepage/enabled")}}});
  DoctorReport::Section environment{"Environment", {}};
  for (const char* name : {"TENON_ISA", "TENON_THREADS", "TENON_SPIN"}) {
    const char* value = std::getenv(name);
    environment.lines.emplace_back(name, value ? value : "not set");
  }
  report.sections.push_back(std::move(environment));
  report.sections.push_back({"Providers", {{"cpu", "ready"}}});
  DoctorReport::Section formats{"Image formats", {}};
  for (const ops::ImageFormat& format : ops::image_formats()) {
    formats.lines.emplace_back(
        format.name, format.decode ? "ready" : fmt::format("not in this build, which had no {}", format.package));
  }
  report.sections.push_back(std::move(formats));

  if (!isa_error().empty()) report.warnings.push_back(isa_error());
  if (threads > 0 && threads < cpus_in_affinity()) {
    report.warnings.push_back(fmt::format("a CPU quota (or TENON_THREADS) limits this process to {} of {} CPUs",
                                          threads, cpus_in_affinity()));
  }
  return report;
}

}  // namespace tenon::tools

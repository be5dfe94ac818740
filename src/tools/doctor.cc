#include "tenon/tools/doctor.h"

#include <dlfcn.h>
#include <fmt/core.h>
#include <link.h>
#include <sys/resource.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#ifdef __GLIBC__
#include <gnu/libc-version.h>
#endif

#include "base/cpu_feature_names.h"
#include "base/source_hash.h"
#include "base/thread_pool.h"
#include "cuda/gpu.h"
#include "ops/image_decoder/cpu_formats.h"
#include "ops/operator.h"
#include "session/providers.h"
#include "tenon/error.h"
#include "tenon/version.h"
#include "tools/machine_facts.h"

namespace tenon::tools {
namespace {

using Section = DoctorReport::Section;

std::string megabytes(int64_t bytes) { return fmt::format("{} MB", bytes >> 20); }

std::string or_unknown(const std::string& text) { return text.empty() ? "unknown" : text; }

std::string build_type(const MachineFacts& facts) {
  std::string text = facts.is_optimized ? "release" : "debug";
  if (!facts.sanitizers.empty()) text += ", sanitizer: " + facts.sanitizers;
  return text;
}

Section tenon_section(const MachineFacts& facts) {
  return {"Tenon",
          {{"version", std::string(version())},
           {"sources", std::string(source_hash())},
#ifdef __VERSION__
           {"compiler", __VERSION__},
#endif
           {"build", build_type(facts)},
           {"newest opset", std::to_string(ops::newest_opset)},
           {"operators", std::to_string(ops::operators().all().size())}}};
}

// The name of the distribution, as /etc/os-release has it.
std::string distribution() {
  std::ifstream file("/etc/os-release");
  constexpr std::string_view key = "PRETTY_NAME=";
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with(key)) continue;
    line.erase(0, key.size());
    std::erase(line, '"');
    return line;
  }
  return "";
}

std::string c_library() {
#ifdef __GLIBC__
  return fmt::format("glibc {}", gnu_get_libc_version());
#else
  return "";
#endif
}

std::string container() {
  if (std::filesystem::exists("/.dockerenv")) return "docker";
  if (std::filesystem::exists("/run/.containerenv")) return "podman";
  if (std::getenv("KUBERNETES_SERVICE_HOST")) return "kubernetes";
  return "none seen";
}

Section system_section() {
  utsname system{};
  uname(&system);
  return {"System",
          {{"distribution", or_unknown(distribution())},
           {"kernel", fmt::format("{} {}", system.sysname, system.release)},
           {"machine", system.machine},
           {"C library", or_unknown(c_library())},
           {"container", container()}}};
}

int64_t numa_nodes() {
  int64_t count = 0;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator("/sys/devices/system/node", error)) {
    const std::string name = entry.path().filename();
    count += name.starts_with("node") && std::isdigit(static_cast<unsigned char>(name.back()));
  }
  return std::max<int64_t>(count, 1);
}

Section cpu_section(const MachineFacts& facts) {
  const CpuFeatures& cpu = facts.cpu;
  const std::string features = feature_names(cpu);
  return {"CPU",
          {{"model", cpu.model},
           {"features", features.empty() ? "none that Tenon uses" : features},
           {"kernels use", std::string(isa_name(facts.isa))},
           {"caches per core",
            fmt::format("L1d {} KB, L2 {} KB, L3 {} KB", cpu.l1d_bytes >> 10, cpu.l2_bytes >> 10, cpu.l3_bytes >> 10)},
           {"NUMA nodes", std::to_string(numa_nodes())},
           {"frequency governor", or_unknown(facts.governor)},
           {"denormals", facts.flushes_denormals ? "flushed to zero" : "kept"}}};
}

Section thread_section(const MachineFacts& facts) {
  const CgroupFacts& group = facts.cgroup;
  Section section{"Threads",
                  {{"CPUs of the machine", std::to_string(facts.cpus)},
                   {"CPUs this process may use", fmt::format("{} ({})", facts.usable_cpus, or_unknown(facts.affinity))},
                   {"CPU quota", group.cpus > 0 ? fmt::format("{:g}", group.cpus) : "none"},
                   {"threads Tenon uses", facts.threads > 0 ? std::to_string(facts.threads) : "none"},
                   {"load of the last minute", fmt::format("{:g}", facts.load)}}};
  if (group.periods > 0)
    section.lines.emplace_back("quota ran out", fmt::format("in {} of {} periods", group.throttled, group.periods));
  section.lines.emplace_back("control group",
                             group.version == 0 ? "none" : fmt::format("version {}, {}", group.version, group.path));
  return section;
}

std::string address_space() {
  rlimit limit{};
  if (getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return "no limit";
  return megabytes(static_cast<int64_t>(limit.rlim_cur));
}

Section memory_section(const MachineFacts& facts) {
  const CgroupFacts& group = facts.cgroup;
  const std::string limit =
      fmt::format("{}, {} of it in use", megabytes(group.memory_limit), megabytes(group.memory_used));
  return {"Memory",
          {{"of the machine", megabytes(facts.memory)},
           {"available", megabytes(facts.available)},
           {"container limit", group.memory_limit > 0 ? limit : "none"},
           {"swap",
            facts.swap == 0 ? "none" : fmt::format("{}, {} free", megabytes(facts.swap), megabytes(facts.swap_free))},
           {"address space", address_space()},
           {"page size", fmt::format("{} KB", sysconf(_SC_PAGESIZE) >> 10)},
           {"huge pages", or_unknown(facts.huge_pages)}}};
}

constexpr const char* own_variables[] = {"TENON_ISA", "TENON_THREADS", "TENON_SPIN"};
// Others that change how programs like this one run: shown where they are set.
constexpr std::string_view variable_prefixes[] = {"TENON_",    "OMP_",  "KMP_",   "GOMP_",   "MKL_",
                                                  "OPENBLAS_", "CUDA_", "CUDNN_", "NVIDIA_", "CUBLAS_",
                                                  "MALLOC_",   "LD_",   "GLIBC_"};

Section environment_section() {
  Section section{"Environment", {}};
  for (const char* name : own_variables) {
    const char* value = std::getenv(name);
    section.lines.emplace_back(name, value ? value : "not set");
  }
  std::vector<std::pair<std::string, std::string>> others;
  for (char** entry = environ; entry && *entry; ++entry) {
    const std::string_view text = *entry;
    const std::string name(text.substr(0, text.find('=')));
    const auto starts = [&](std::string_view prefix) { return name.starts_with(prefix); };
    const bool is_shown = std::ranges::find(own_variables, name) != std::end(own_variables);
    if (!is_shown && std::ranges::any_of(variable_prefixes, starts))
      others.emplace_back(name, text.substr(std::min(text.size(), name.size() + 1)));
  }
  std::ranges::sort(others);
  section.lines.insert(section.lines.end(), others.begin(), others.end());
  return section;
}

// Each of NVIDIA's libraries with where it was found, or where it was looked for.
Section gpu_section() {
  Section section{"GPU", {}};
  for (const cuda::LibraryReport& report : cuda::libraries().reports) {
    if (report.is_found) {
      section.lines.emplace_back(report.name, report.attempts.back().path);
      continue;
    }
    std::string text = "not found: ";
    for (const cuda::Attempt& attempt : report.attempts)
      text += fmt::format("{}{}", &attempt == report.attempts.data() ? "" : "; ", attempt.problem);
    section.lines.emplace_back(report.name, fmt::format("{}. {}", text, report.fix));
  }
  try {
    const std::vector<cuda::GpuFacts> all = cuda::Gpu::list();
    const auto gpu = cuda::Gpu::open();
    section.lines.emplace_back("name", std::string(gpu->name()));
    section.lines.emplace_back("compute capability", fmt::format("{}.{}", gpu->major(), gpu->minor()));
    section.lines.emplace_back("memory", fmt::format("{} MiB", gpu->total_bytes() >> 20));
    section.lines.emplace_back(
        "driver", fmt::format("CUDA {}.{}", gpu->driver_version() / 1000, gpu->driver_version() % 1000 / 10));
    section.lines.emplace_back("GPUs", std::to_string(all.size()));
    for (size_t i = 1; i < all.size(); ++i)
      section.lines.emplace_back(cuda::Gpu::provider_name(static_cast<int>(i)),
                                 fmt::format("{}, compute capability {}.{}, {} MiB", all[i].name, all[i].major,
                                             all[i].minor, all[i].total_bytes >> 20));
  } catch (const Error& error) {
    section.lines.emplace_back("usable", "no: " + error.message());
  }
  return section;
}

Section provider_section() {
  Section section{"Providers", {}};
  for (const std::string& name : provider_names()) {
    std::string state = "ready";
    try {
      start_provider(name);
    } catch (const Error& error) {
      state = fmt::format("cannot start: {}", error.message());
      if (!error.hint().empty()) state += "; " + error.hint();
    }
    section.lines.emplace_back(name, state);
  }
  if (std::ranges::find(section.lines, "cuda", &std::pair<std::string, std::string>::first) == section.lines.end())
    section.lines.emplace_back("cuda", "not in this build");
  return section;
}

// Where the dynamic linker finds a library. It stays loaded: some do not free what they allocate when they are loaded.
std::string library_path(const char* name) {
  void* library = dlopen(name, RTLD_LAZY | RTLD_LOCAL | RTLD_NODELETE);
  if (!library) return "not found";
  const link_map* map = nullptr;
  std::string path = dlinfo(library, RTLD_DI_LINKMAP, &map) == 0 && map ? map->l_name : "found";
  dlclose(library);
  return path;
}

Section library_section() {
  Section section{"CUDA libraries", {}};
  for (const char* name : {"libcuda.so.1", "libcudart.so.13", "libcudart.so.12", "libcublasLt.so.13",
                           "libcublasLt.so.12", "libcudnn.so.9", "libnvrtc.so.13", "libnvrtc.so.12"})
    section.lines.emplace_back(name, library_path(name));
  const std::string driver = first_line("/proc/driver/nvidia/version");
  section.lines.emplace_back("driver", driver.empty() ? "none" : driver);
  return section;
}

Section format_section() {
  Section section{"Image formats", {}};
  for (const ops::ImageFormat& format : ops::image_formats()) {
    section.lines.emplace_back(
        format.name, format.decode ? "ready" : fmt::format("not in this build, which had no {}", format.package));
  }
  return section;
}

void add_rates(Section& section, const MachineSpeed::Rates& rates) {
  const std::string threads = fmt::format("{} thread{}", rates.threads, rates.threads == 1 ? "" : "s");
  section.lines.emplace_back("matrix product, " + threads,
                             fmt::format("{:.1f} GFLOP/s, {:.0f} % of the peak of {:.1f}", rates.matmul_flops * 1e-9,
                                         100 * rates.matmul_flops / rates.peak_flops, rates.peak_flops * 1e-9));
  section.lines.emplace_back("memory, " + threads,
                             fmt::format("{:.1f} GB/s copying, {:.1f} GB/s reading", rates.copy_bandwidth * 1e-9,
                                         rates.read_bandwidth * 1e-9));
}

Section speed_section(const std::optional<MachineSpeed>& speed, const DoctorOptions& options) {
  Section section{"Self-test", {}};
  if (!speed) {
    section.lines.emplace_back("not measured",
                               options.measure ? "the environment variables make no sense" : "as asked");
    return section;
  }
  add_rates(section, speed->one);
  if (speed->all.threads > 1) add_rates(section, speed->all);
  section.lines.emplace_back("took", fmt::format("{:.1f} s and {}", speed->seconds, megabytes(speed->memory_bytes)));
  return section;
}

}  // namespace

DoctorReport examine_machine(const DoctorOptions& options) {
  MachineFacts facts = machine_facts();
  if (options.measure && facts.threads > 0) facts.speed = measure_machine();
  return {.sections = {tenon_section(facts), system_section(), cpu_section(facts), thread_section(facts),
                       memory_section(facts), environment_section(), provider_section(), gpu_section(),
                       library_section(), format_section(), speed_section(facts.speed, options)},
          .warnings = warnings_of(facts),
          .speed = facts.speed};
}

}  // namespace tenon::tools

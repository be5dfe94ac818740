#include "base/cpu_features.h"

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <fstream>
#include <sstream>

#include "base/cpu_probe.h"

namespace tenon {
namespace {

constexpr int no_override = -1;
std::atomic<int> isa_override{no_override};

std::string first_line(const std::string& path) {
  std::string line;
  std::getline(std::ifstream(path), line);
  return line;
}

// CPUs in a list such as "0-3,8".
int64_t cpus_in_list(const std::string& list) {
  int64_t count = 0;
  std::istringstream items(list);
  for (std::string item; std::getline(items, item, ',');) {
    char* end = nullptr;
    const long first = std::strtol(item.c_str(), &end, 10);
    const long last = *end == '-' ? std::strtol(end + 1, nullptr, 10) : first;
    count += std::max(0L, last - first + 1);
  }
  return std::max<int64_t>(count, 1);
}

int64_t cache_bytes(const std::string& size) {
  char* end = nullptr;
  const int64_t number = std::strtoll(size.c_str(), &end, 10);
  return *end == 'K' ? number << 10 : *end == 'M' ? number << 20 : number;
}

void read_caches(CpuFeatures& features) {
  for (int index = 0; index < 8; ++index) {
    const std::string folder = "/sys/devices/system/cpu/cpu0/cache/index" + std::to_string(index) + "/";
    const std::string level = first_line(folder + "level");
    if (level.empty()) return;
    if (first_line(folder + "type") == "Instruction") continue;
    const int64_t bytes =
        cache_bytes(first_line(folder + "size")) / cpus_in_list(first_line(folder + "shared_cpu_list"));
    if (bytes <= 0) continue;
    if (level == "1") features.l1d_bytes = bytes;
    if (level == "2") features.l2_bytes = bytes;
    if (level == "3") features.l3_bytes = bytes;
  }
}

std::string read_model() {
  std::ifstream file("/proc/cpuinfo");
  std::string implementer, part;
  for (std::string line; std::getline(file, line) && !line.empty();) {
    const size_t colon = line.find(':');
    if (colon == std::string::npos || colon + 2 > line.size()) continue;
    std::string value = line.substr(colon + 2);
    if (line.starts_with("model name")) return value;
    if (line.starts_with("CPU implementer")) implementer = value;
    if (line.starts_with("CPU part")) part = value;
  }
  return implementer.empty() ? "unknown" : "implementer " + implementer + ", part " + part;
}

CpuFeatures detect() {
  CpuFeatures features;
  probe_instruction_sets(features);
  read_caches(features);
  features.model = read_model();
  return features;
}

const IsaChoice& environment_choice() {
  static const IsaChoice choice = [] {
    const char* wish = std::getenv("TENON_ISA");
    return choose_isa(wish ? wish : "", cpu_features());
  }();
  return choice;
}

}  // namespace

const CpuFeatures& cpu_features() {
  static const CpuFeatures features = detect();
  return features;
}

std::string_view isa_name(Isa isa) {
  switch (isa) {
    case Isa::portable:
      return "portable";
    case Isa::neon:
      return "neon";
    case Isa::sve256:
      return "sve256";
    case Isa::avx2:
      return "avx2";
    case Isa::avx512:
      return "avx512";
  }
  return "unknown";
}

std::vector<Isa> available_isas(const CpuFeatures& features) {
  std::vector<Isa> isas = {Isa::portable};
  if (features.neon) isas.push_back(Isa::neon);
  if (features.avx2) isas.push_back(Isa::avx2);
  if (features.avx2 && features.avx512) isas.push_back(Isa::avx512);
  return isas;
}

std::vector<Isa> available_wide_isas(const CpuFeatures& features) {
  std::vector<Isa> isas = available_isas(features);
  if (features.neon && features.sve256) isas.push_back(Isa::sve256);
  return isas;
}

IsaChoice choose_isa(std::string_view wish, const CpuFeatures& features) {
  const Isa best = available_isas(features).back();
  if (wish.empty()) return {best, ""};
  std::string names;
  for (Isa isa : available_wide_isas(features)) {
    if (isa_name(isa) == wish) return {isa, ""};
    names += names.empty() ? "" : ", ";
    names += isa_name(isa);
  }
  const bool known = wish == "neon" || wish == "sve256" || wish == "avx2" || wish == "avx512";
  std::string error = "TENON_ISA is '" + std::string(wish) + "', ";
  error += known ? "which this processor does not have" : "which is not an instruction set Tenon knows";
  return {best, error + "; this processor has: " + names};
}

Isa best_isa() {
  const Isa isa = best_wide_isa();
  return isa == Isa::sve256 ? Isa::neon : isa;
}

Isa best_wide_isa() {
  const int forced = isa_override.load(std::memory_order_relaxed);
  return forced == no_override ? environment_choice().isa : static_cast<Isa>(forced);
}

const std::string& isa_error() { return environment_choice().error; }

std::string missing_baseline() {
#ifdef __AVX2__
  if (!cpu_features().avx2) return "AVX2";
#endif
  return "";
}

ScopedIsa::ScopedIsa(Isa isa) : previous_(isa_override.exchange(static_cast<int>(isa))) {}
ScopedIsa::~ScopedIsa() { isa_override = previous_; }

}  // namespace tenon

#include "session/providers.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <mutex>
#include <optional>

#include "base/cpu_features.h"
#include "base/fail.h"
#include "base/names.h"
#include "providers/cpu/cpu_provider.h"
#include "providers/cuda/cuda_provider.h"

namespace tenon {
namespace {

std::unique_ptr<Provider> start_cpu() {
  if (const std::string missing = missing_baseline(); !missing.empty()) {
    throw Error(ErrorCode::provider_unavailable,
                fmt::format("this build is for processors with {}, which this one does not have", missing),
                "build Tenon with -DTENON_X86_BASELINE=x86-64");
  }
  if (!isa_error().empty()) fail(ErrorCode::invalid_argument, "{}", isa_error());
  return std::make_unique<CpuProvider>();
}

struct Registry {
  std::mutex mutex;
  std::map<std::string, StartProvider> starts{{"cpu", start_cpu},
                                              {"cuda", [] { return std::make_unique<CudaProvider>(); }}};
};

Registry& registry() {
  static Registry all;
  return all;
}

// Which GPU "cuda:1" is; nullopt for names of another form.
std::optional<int> gpu_of(std::string_view name) {
  constexpr std::string_view beginning = "cuda:";
  if (!name.starts_with(beginning)) return std::nullopt;
  const std::string_view text = name.substr(beginning.size());
  int ordinal = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), ordinal);
  if (error != std::errc() || end != text.data() + text.size() || ordinal < 0)
    fail(ErrorCode::invalid_argument, "'{}' is no provider: the number of a GPU comes after the colon, as in 'cuda:1'",
         name);
  return ordinal;
}

}  // namespace

void register_provider(const std::string& name, StartProvider start) {
  std::lock_guard lock(registry().mutex);
  registry().starts[name] = std::move(start);
}

std::string short_provider_name(const std::string& name) {
  constexpr std::string_view ending = "ExecutionProvider";
  if (name.size() <= ending.size() || !name.ends_with(ending)) return name;
  std::string result = name.substr(0, name.size() - ending.size());
  std::ranges::transform(result, result.begin(), [](char c) { return c >= 'A' && c <= 'Z' ? char(c - 'A' + 'a') : c; });
  return result;
}

std::vector<std::string> provider_names() {
  std::lock_guard lock(registry().mutex);
  std::vector<std::string> names;
  for (const auto& [name, _] : registry().starts) names.push_back(name);
  return names;
}

std::vector<std::string> available_providers() {
  std::vector<std::string> names;
  for (const std::string& name : provider_names()) {
    try {
      start_provider(name);
      names.push_back(name);
    } catch (const Error& error) {
      if (error.code() != ErrorCode::provider_unavailable) throw;
    }
  }
  return names;
}

std::unique_ptr<Provider> start_provider(const std::string& name) {
  if (const std::optional<int> gpu = gpu_of(name)) return std::make_unique<CudaProvider>(*gpu);
  StartProvider start;
  {
    std::lock_guard lock(registry().mutex);
    if (auto found = registry().starts.find(short_provider_name(name)); found != registry().starts.end())
      start = found->second;
  }
  if (start) return start();
  std::string list;
  for (const std::string& known : provider_names()) list += (list.empty() ? "" : ", ") + known;
  throw Error(ErrorCode::provider_unavailable, fmt::format("there is no provider '{}' in this build", name),
              "the providers of this build are: " + list);
}

}  // namespace tenon

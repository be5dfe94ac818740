#include "session/compiled_key.h"

#include <fmt/ranges.h>

#include <algorithm>

#include "base/content_hash.h"
#include "base/cpu_feature_names.h"
#include "base/fail.h"
#include "base/source_hash.h"
#include "session/providers.h"
#include "tenon/version.h"

namespace tenon {
namespace {

namespace fs = std::filesystem;

// An option that decides on the graph, as text.
struct GraphOption {
  std::string_view name;
  std::string (*text)(const SessionOptions&);
};

std::string joined(const std::vector<std::string>& words) { return fmt::format("{}", fmt::join(words, ", ")); }

std::string joined(const std::map<std::string, int64_t>& sizes) {
  std::string text;
  for (const auto& [name, size] : sizes) text += fmt::format("{}{}={}", text.empty() ? "" : ", ", name, size);
  return text;
}

constexpr std::string_view precision_option = "precision";

constexpr GraphOption graph_options[] = {
    {"level", [](const SessionOptions& o) { return std::string(name_of(o.level)); }},
    {"disabled passes", [](const SessionOptions& o) { return joined(o.disabled_passes); }},
    {"most rewrites", [](const SessionOptions& o) { return std::to_string(o.most_rewrites); }},
    {"values to keep", [](const SessionOptions& o) { return joined(o.keep); }},
    {"operators to decompose", [](const SessionOptions& o) { return joined(o.decompose); }},
    {"sizes", [](const SessionOptions& o) { return joined(o.sizes); }},
    {"denoted sizes", [](const SessionOptions& o) { return joined(o.denoted_sizes); }},
    {"names of sizes", [](const SessionOptions& o) { return std::string(o.trust_size_names ? "trusted" : "ignored"); }},
    {precision_option,
     [](const SessionOptions& o) { return std::string(o.precision == Precision::fast ? "fast" : "full"); }},
    {"memory", [](const SessionOptions& o) { return std::string(o.memory == MemoryUse::low ? "low" : "normal"); }},
};

// What no file can hold.
std::string what_stays_here(const SessionOptions& options) {
  if (!options.custom_operators.empty() || !options.custom_operator_libraries.empty()) return "custom operators";
  if (!options.full_precision_nodes.empty()) return "nodes that keep full precision";
  return options.initializers.empty() ? "" : "tensors in place of initializers";
}

std::vector<std::string> names_of(const std::vector<std::string>& providers) {
  std::vector<std::string> names;
  for (const std::string& name : providers) names.push_back(short_provider_name(name));
  return names;
}

std::string value_of(const CompiledKey& key, const GraphOption& option) {
  for (const auto& [name, value] : key.options)
    if (name == option.name) return value;
  return option.text({});
}

[[noreturn]] void stale(const std::string& message) {
  throw Error(ErrorCode::stale_file, message, "compile the model again: tenon compile");
}

uint64_t hash_of(const fs::path& path) { return content_hash(MappedFile::open(path)->bytes()); }

bool is_as_it_was(const ModelFile& file, const fs::path& path) {
  const std::optional<FileIdentity> now = FileIdentity::of(path);
  if (!now || now->bytes != file.bytes) return false;
  return now->modified_ns == file.modified_ns || hash_of(path) == file.hash;
}

}  // namespace

Precision precision_of(const CompiledKey& key) {
  return std::ranges::find(key.options, std::pair(std::string(precision_option), std::string("fast"))) !=
                 key.options.end()
             ? Precision::fast
             : Precision::full;
}

std::string compiled_version() { return fmt::format("{} ({})", version(), source_hash()); }

std::string compiled_processor() {
  const CpuFeatures& cpu = cpu_features();
  return fmt::format("kernels for {} on {}, {} KB of L1 cache", isa_name(best_isa()), feature_names(cpu),
                     cpu.l1d_bytes >> 10);
}

CompiledKey make_key(const fs::path& model, const std::vector<FileIdentity>& files, const SessionOptions& options) {
  if (const std::string part = what_stays_here(options); !part.empty())
    fail(ErrorCode::unsupported, "a compiled file cannot hold {}", part);
  CompiledKey key{compiled_version(), compiled_processor(), {}, names_of(options.providers), fs::absolute(model), {}};
  for (const GraphOption& option : graph_options) {
    if (option.text(options) != option.text({})) key.options.emplace_back(option.name, option.text(options));
  }
  for (const FileIdentity& file : files) {
    key.files.push_back({file.path.lexically_relative(key.model.parent_path()).string(), file.bytes, file.modified_ns,
                         hash_of(file.path)});
  }
  return key;
}

std::string check_key(const CompiledKey& key, const SessionOptions& options) {
  if (key.version != compiled_version())
    stale(fmt::format("it was compiled by Tenon {}, this is {}", key.version, compiled_version()));
  if (key.processor != compiled_processor())
    stale(fmt::format("it was compiled for {}; here are {}", key.processor, compiled_processor()));
  if (key.providers != names_of(options.providers))
    stale(fmt::format("it was compiled for the providers {}, the session asks for {}", joined(key.providers),
                      joined(names_of(options.providers))));
  if (const std::string part = what_stays_here(options); !part.empty())
    stale(fmt::format("the session brings {}, which no compiled file can hold", part));
  std::string decided;
  for (const GraphOption& option : graph_options) {
    const std::string wanted = option.text(options), has = value_of(key, option);
    if (wanted == has) continue;
    if (wanted != option.text({}))
      stale(fmt::format("it was compiled with {} '{}', the session asks for '{}'", option.name, has, wanted));
    decided += fmt::format("{}{} '{}'", decided.empty() ? "" : ", ", option.name, has);
  }
  return decided;
}

std::optional<fs::path> find_model(const CompiledKey& key, const fs::path& compiled) {
  std::error_code ignored;
  for (const fs::path& path : {compiled.parent_path() / key.model.filename(), key.model}) {
    if (!key.model.empty() && fs::is_regular_file(path, ignored)) return path;
  }
  return std::nullopt;
}

void check_model(const CompiledKey& key, const fs::path& model) {
  for (const ModelFile& file : key.files) {
    const fs::path path = model.parent_path() / file.name;
    const bool is_first = &file == &key.files.front();
    if (!is_as_it_was(file, is_first ? model : path))
      stale(fmt::format("'{}' has changed since it was compiled", (is_first ? model : path).string()));
  }
}

}  // namespace tenon

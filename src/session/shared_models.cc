#include "session/shared_models.h"

#include <algorithm>
#include <mutex>

#include "base/mapped_file.h"
#include "onnx/model_file.h"

namespace tenon {
namespace {

// What a compiled model follows from, beside the contents of files.
struct Key {
  std::filesystem::path path;
  std::vector<std::string> providers, decompose, disabled_passes, keep;
  std::vector<std::filesystem::path> libraries;
  std::map<std::string, int64_t> sizes, denoted_sizes;
  OptimizationLevel level;
  MemoryUse memory;
  int64_t memory_limit;  // constants must fit too
  bool allow_fallback, trust_size_names;

  auto operator<=>(const Key&) const = default;  // NOLINT(modernize-use-nullptr): it means the zero of <=>
};

struct Entry {
  std::weak_ptr<const CompiledModel> model;
  std::vector<FileIdentity> files;

  std::shared_ptr<const CompiledModel> get() const {
    const bool is_current = std::ranges::all_of(
        files, [](const FileIdentity& file) { return FileIdentity::of(file.path) == std::optional(file); });
    return is_current ? model.lock() : nullptr;
  }
};

std::mutex mutex;
std::map<Key, Entry> models;  // guarded by the mutex

}  // namespace

std::shared_ptr<const CompiledModel> shared_model(const std::filesystem::path& path, const SessionOptions& options,
                                                  ThreadPool& threads) {
  auto load = [&](std::vector<FileIdentity>& files) {
    return std::make_shared<const CompiledModel>(
        onnx::load_model(path, &files, {.given = options.initializers, .old_inputs_are_constants = true}), options,
        threads);
  };
  Entry entry;
  if (!options.custom_operators.empty() || !options.initializers.empty()) return load(entry.files);
  std::error_code error;
  const Key key{std::filesystem::absolute(path, error),
                options.providers,
                options.decompose,
                options.disabled_passes,
                options.keep,
                options.custom_operator_libraries,
                options.sizes,
                options.denoted_sizes,
                options.level,
                options.memory,
                options.memory_limit,
                options.allow_fallback,
                options.trust_size_names};
  {
    std::lock_guard lock(mutex);
    auto found = models.find(key);
    if (found != models.end()) {
      if (auto model = found->second.get()) return model;
    }
  }
  std::shared_ptr<const CompiledModel> model = load(entry.files);
  entry.model = model;
  std::lock_guard lock(mutex);
  std::erase_if(models, [](const auto& item) { return item.second.model.expired(); });
  // Another thread may have been faster.
  auto [found, is_new] = models.try_emplace(key, entry);
  if (!is_new) {
    if (auto other = found->second.get()) return other;
    found->second = entry;
  }
  return model;
}

}  // namespace tenon

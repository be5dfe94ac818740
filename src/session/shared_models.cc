#include "session/shared_models.h"

#include <algorithm>
#include <mutex>

#include "base/fail.h"
#include "base/mapped_file.h"
#include "onnx/model_file.h"

namespace tenon {
namespace {

// What a compiled model follows from, beside the contents of files.
struct Key {
  std::filesystem::path path;
  std::vector<std::string> providers, decompose, disabled_passes, keep, full_precision_nodes;
  int64_t most_rewrites;
  std::vector<std::filesystem::path> libraries;
  std::map<std::string, int64_t> sizes, denoted_sizes;
  OptimizationLevel level;
  MemoryUse memory;
  Precision precision;
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

std::shared_ptr<CompiledModel> load_onnx(const std::filesystem::path& path, const SessionOptions& options,
                                         ThreadPool& threads, std::vector<FileIdentity>& files) {
  return std::make_shared<CompiledModel>(
      onnx::load_model(path, &files, {.given = options.initializers, .old_inputs_are_constants = true}), options,
      threads);
}

// `model` receives the ONNX model that the file was compiled from, if that is there.
std::shared_ptr<CompiledModel> load_compiled(const std::filesystem::path& path, const SessionOptions& options,
                                             ThreadPool& threads, std::vector<FileIdentity>& files,
                                             std::optional<std::filesystem::path>& model) {
  CompiledFile file = CompiledFile::open(path);
  const CompiledKey key = file.description.key;
  model = find_model(key, path);
  const std::string decided = check_key(key, options);
  if (model) check_model(key, *model);
  for (const ModelFile& part : key.files) {
    if (!model) break;
    if (auto identity = FileIdentity::of(model->parent_path() / part.name)) files.push_back(*identity);
  }
  auto result = std::make_shared<CompiledModel>(std::move(file), options, threads);
  if (!decided.empty()) result->notes.push_back(fmt::format("the model was compiled with {}", decided));
  return result;
}

// The file as it is, or else the ONNX model that it was compiled from.
std::shared_ptr<CompiledModel> load_compiled_or_onnx(const std::filesystem::path& path, const SessionOptions& options,
                                                     ThreadPool& threads, std::vector<FileIdentity>& files) {
  if (auto identity = FileIdentity::of(path)) files.push_back(*identity);
  std::error_code ignored;
  std::optional<std::filesystem::path> model;
  try {
    return load_compiled(path, options, threads, files, model);
  } catch (Error& error) {
    if (error.code() != ErrorCode::stale_file && error.code() != ErrorCode::damaged_file) throw;
    // A file that cannot be read does not say where its model is.
    const std::filesystem::path beside = std::filesystem::path(path).replace_extension(".onnx");
    if (!model && std::filesystem::is_regular_file(beside, ignored)) model = beside;
    const std::string problem = fmt::format("'{}' cannot be used: {}", path.string(), error.message());
    if (!model) throw Error(error.code(), problem, error.hint()).at_node(error.node()).on_tensor(error.tensor());
    std::vector<FileIdentity> own;
    auto result = load_onnx(*model, options, threads, own);
    files.insert(files.end(), own.begin(), own.end());
    result->notes.insert(result->notes.begin(), fmt::format("{}; loaded '{}' instead", problem, model->string()));
    return result;
  }
}

}  // namespace

std::shared_ptr<const CompiledModel> shared_model(const std::filesystem::path& path, const SessionOptions& options,
                                                  ThreadPool& threads) {
  auto load = [&](std::vector<FileIdentity>& files) -> std::shared_ptr<const CompiledModel> {
    return CompiledFile::is_one(path) ? load_compiled_or_onnx(path, options, threads, files)
                                      : load_onnx(path, options, threads, files);
  };
  Entry entry;
  if (!options.custom_operators.empty() || !options.initializers.empty()) return load(entry.files);
  std::error_code error;
  const Key key{std::filesystem::absolute(path, error),
                options.providers,
                options.decompose,
                options.disabled_passes,
                options.keep,
                options.full_precision_nodes,
                options.most_rewrites,
                options.custom_operator_libraries,
                options.sizes,
                options.denoted_sizes,
                options.level,
                options.memory,
                options.precision,
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
    found->second = std::move(entry);
  }
  return model;
}

}  // namespace tenon

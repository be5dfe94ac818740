#include "tenon/compile.h"

#include <algorithm>

#include "base/fail.h"
#include "ir/count.h"
#include "onnx/model_file.h"
#include "session/compiled_file.h"
#include "session/compiled_model.h"

namespace tenon {
namespace {

namespace fs = std::filesystem;

int64_t bytes_of(const std::vector<StoredPiece>& pieces) {
  int64_t total = 0;
  for (const StoredPiece& piece : pieces) total += static_cast<int64_t>(piece.bytes);
  return total;
}

CompiledModelInfo describe(CompiledFile& file) {
  const CompiledDescription& description = file.description;
  CompiledModelInfo info;
  info.bytes = static_cast<int64_t>(file.identity().bytes);
  info.graph_bytes = static_cast<int64_t>(file.graph_bytes());
  info.tensor_bytes = bytes_of(description.tensors);
  for (const StoredEntry& entry : description.packed) info.packed_bytes += bytes_of(entry.pieces);
  info.nodes = static_cast<int64_t>(ir::count_nodes(*file.read_model()->graph));
  info.tensors = std::ssize(description.tensors);
  info.packed = std::ssize(description.packed);
  info.version = description.key.version;
  info.processor = description.key.processor;
  info.options = description.key.options;
  info.model = description.key.model;
  return info;
}

}  // namespace

CompiledModelInfo compile(const fs::path& model, const fs::path& output, const SessionOptions& options) {
  if (CompiledFile::is_one(model))
    throw Error(ErrorCode::invalid_argument, fmt::format("'{}' is compiled already", model.string()),
                "give the ONNX model that it was compiled from");
  std::error_code ignored;
  if (fs::equivalent(model, output, ignored))
    fail(ErrorCode::invalid_argument, "'{}' is the model itself", output.string());
  std::vector<FileIdentity> files;
  std::unique_ptr<ir::Model> loaded = onnx::load_model(model, &files, {.old_inputs_are_constants = true});
  std::rotate(files.begin(), files.end() - 1, files.end());  // the model's own comes last
  CompiledKey key = make_key(model, files, options);
  RecordedPacking packing;
  const CompiledModel compiled(std::move(loaded), options, *ThreadPool::shared(), &packing);
  write_compiled_file(output, std::move(key), compiled, compiled.model(), packing);
  CompiledFile written = CompiledFile::open(output);
  return describe(written);
}

CompiledModelInfo check_compiled(const fs::path& path) {
  CompiledFile file = CompiledFile::open(path);
  SessionOptions options;
  options.providers = file.description.key.providers;
  check_key(file.description.key, options);
  if (const auto model = find_model(file.description.key, path)) check_model(file.description.key, *model);
  file.check_contents();
  return describe(file);
}

bool is_compiled(const fs::path& path) { return CompiledFile::is_one(path); }

}  // namespace tenon

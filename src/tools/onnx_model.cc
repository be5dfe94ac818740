#include "tenon/tools/onnx_model.h"

#include <fmt/core.h>

#include <algorithm>

#include "base/fail.h"
#include "ir/verify.h"
#include "onnx/model_file.h"
#include "session/session_of_model.h"

namespace tenon::tools {
namespace {

namespace fs = std::filesystem;
using Data = SaveOptions::Data;

constexpr int64_t nothing_is_that_large = std::numeric_limits<int64_t>::max();

std::optional<int64_t> external_from(const SaveOptions& options) {
  if (options.data == Data::as_read) return std::nullopt;
  return options.data == Data::inside ? nothing_is_that_large : options.outside_from;
}

// A copy that is in order, or an error: what is not whole is not written.
std::unique_ptr<ir::Model> whole(const ir::Model& model) {
  std::unique_ptr<ir::Model> copy = model.clone();
  ir::verify_and_sort(*copy->graph);
  for (const auto& function : copy->functions) ir::verify_and_sort(*function->body);
  return copy;
}

}  // namespace

OnnxModel::OnnxModel(std::shared_ptr<const ir::Model> model, std::vector<fs::path> read_from)
    : model_(std::move(model)), read_from_(std::move(read_from)) {}

OnnxModel OnnxModel::load(const fs::path& path) {
  std::vector<FileIdentity> files;
  std::shared_ptr<const ir::Model> model = onnx::load_model(path, &files);
  std::vector<fs::path> paths;
  for (const FileIdentity& file : files) paths.push_back(file.path);
  return OnnxModel(std::move(model), std::move(paths));
}

OnnxModel OnnxModel::from_bytes(std::span<const std::byte> bytes, const fs::path& folder) {
  auto copy = std::make_shared<const std::vector<std::byte>>(bytes.begin(), bytes.end());
  return OnnxModel(onnx::parse_model(*copy, copy, folder));
}

OnnxModel OnnxModel::with(std::unique_ptr<ir::Model> model) const { return OnnxModel(std::move(model), read_from_); }

SavedModel OnnxModel::save(const fs::path& path, const SaveOptions& options) const {
  const std::unique_ptr<ir::Model> model = whole(*model_);
  SavedModel result;
  onnx::WriteOptions how{external_from(options), options.data_file};
  how.about_to_write = [&](const fs::path& file) {
    std::error_code ignored;
    const bool is_input =
        std::ranges::any_of(read_from_, [&](const fs::path& read) { return fs::equivalent(read, file, ignored); });
    if (is_input && !options.overwrite) {
      throw Error(ErrorCode::invalid_argument,
                  fmt::format("'{}' is a file that the model was read from", file.string()),
                  "give another name, or --force to overwrite it");
    }
    result.files.push_back(file);
  };
  try {
    onnx::save_model(*model, path, how);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::overflow || options.data != Data::as_read) throw;
    how.external_from = options.outside_from;
    onnx::save_model(*model, path, how);
    result.notes.emplace_back("tensors are in a file of their own: with them the model's would have over 2 GB");
  }
  return result;
}

std::string OnnxModel::to_bytes() const { return onnx::serialize_model(*whole(*model_)); }

Session OnnxModel::open(const SessionOptions& options) const { return session_of(model_->clone(), options); }

}  // namespace tenon::tools

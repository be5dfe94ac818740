#pragma once

#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "tenon/session.h"

namespace tenon::ir {
struct Model;
}

namespace tenon::tools {

struct SaveOptions {
  // Where tensors go: as they were read, all into the model's own file, or those of `outside_from` bytes or more into
  // one beside it.
  enum class Data : uint8_t { as_read, inside, outside } data = Data::as_read;
  int64_t outside_from = 1024;
  std::string data_file;   // its name; "": that of the model with ".data" behind it
  bool overwrite = false;  // a file that the model was read from
};

struct SavedModel {
  std::vector<std::filesystem::path> files;
  std::vector<std::string> notes;
};

// A model as its file has it: nothing is lifted, nothing inferred. It does not change; the tools make new ones of it.
// Copies share everything.
class OnnxModel {
 public:
  static OnnxModel load(const std::filesystem::path& path);
  // From memory, which is copied. External data is looked for in `folder`.
  static OnnxModel from_bytes(std::span<const std::byte> bytes, const std::filesystem::path& folder = {});

  // Writes to temporary files first and renames them. Throws before that if the model is not whole (undefined_name,
  // duplicate_name, cyclic_graph), or if a file that it was read from would be overwritten and `options` do not say so.
  SavedModel save(const std::filesystem::path& path, const SaveOptions& options = {}) const;
  // With all tensors inside.
  std::string to_bytes() const;

  // A session that runs it.
  Session open(const SessionOptions& options = {}) const;

  // For the tools themselves.
  explicit OnnxModel(std::shared_ptr<const ir::Model> model, std::vector<std::filesystem::path> read_from = {});
  const ir::Model& ir() const { return *model_; }
  const std::vector<std::filesystem::path>& read_from() const { return read_from_; }
  // Another model in place of this one, with the same files behind it.
  OnnxModel with(std::unique_ptr<ir::Model> model) const;

 private:
  std::shared_ptr<const ir::Model> model_;
  std::vector<std::filesystem::path> read_from_;  // files that may not be overwritten by accident
};

}  // namespace tenon::tools

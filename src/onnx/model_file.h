#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/mapped_file.h"
#include "ir/graph.h"

namespace tenon::onnx {

class ExternalWriter;

// Tensors that take the place of initializers of the main graph, by name.
using GivenTensors = std::map<std::string, Tensor, std::less<>>;

// What is wrong with the external data of a tensor.
struct ExternalProblem {
  std::string tensor, location, problem;
};

struct ReadOptions {
  // Each must have the type and shape of the initializer whose place it takes, and must have one to take, else:
  // type_mismatch, shape_mismatch, unknown_name.
  GivenTensors given = {};
  // Before version 4 of the format every initializer had to be an input too, so that says nothing. Whether they are
  // read as constants, as they are meant.
  bool old_inputs_are_constants = false;
  // If not null, receives what is wrong with external data, which then is no error: such tensors have a type and a
  // shape, and no memory.
  std::vector<ExternalProblem>* external_problems = nullptr;
};

// Reads an ONNX model. The file stays mapped while tensors view into it; aligned data is not copied. External data is
// opened and checked too. Throws missing_file, not_onnx, truncated, invalid_model or missing_external_data. `files`, if
// not null, receives the files that were opened.
std::unique_ptr<ir::Model> load_model(const std::filesystem::path& path, std::vector<FileIdentity>* files = nullptr,
                                      const ReadOptions& options = {});

// The same from memory, which `owner` keeps alive (null: the tensors are copied). External data is looked for below
// `folder`; an empty one means that the model may have none.
std::unique_ptr<ir::Model> parse_model(std::span<const std::byte> bytes, std::shared_ptr<const void> owner,
                                       const std::filesystem::path& folder = {}, const ReadOptions& options = {});

// The same where the caller has the files of external data, by their location.
using DataFiles = std::map<std::string, std::shared_ptr<const MappedFile>>;
std::unique_ptr<ir::Model> parse_model(std::span<const std::byte> bytes, const DataFiles& files);

// The inverse: nothing is lifted or reordered, unknown fields are kept.
std::string serialize_model(const ir::Model& model);
// The same with tensors that are stored externally in `external`, which is the caller's to write.
std::string serialize_model(const ir::Model& model, ExternalWriter& external);

struct WriteOptions {
  // Tensors of so many bytes or more are stored externally, and no others. Not set: those that were.
  std::optional<int64_t> external_from = std::nullopt;
  std::string data_file = {};  // beside the model, for external tensors; "": the model's name and ".data"
  // Called before a file is written.
  std::function<void(const std::filesystem::path&)> about_to_write = {};
};

// Writes to temporary files and renames them. Throws ErrorCode::overflow, having written nothing, if a message would
// have over 2 GB, which no other reader takes.
void save_model(const ir::Model& model, const std::filesystem::path& path, const WriteOptions& options = {});

// What the first bytes of a file that is not ONNX look like: "a Git LFS pointer", "a zip archive", …; "" if no idea.
std::string looks_like(std::span<const std::byte> bytes);

}  // namespace tenon::onnx

#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/mapped_file.h"
#include "ir/graph.h"
#include "onnx/model_file.h"
#include "onnx/wire.h"

namespace tenon::onnx {

// Opens the files that external tensors live in, and collects what is wrong with them.
class ExternalData {
 public:
  // `model` is the model's path; its folder and, when it is a link, the folder it links into may hold data.
  explicit ExternalData(const std::filesystem::path& model);
  // For models in memory; an empty folder allows no external data.
  static ExternalData in_folder(const std::filesystem::path& folder);
  // These files and no others.
  static ExternalData of_files(const DataFiles& files);

  struct Location {
    std::shared_ptr<const MappedFile> file;
    std::span<const std::byte> bytes;
  };
  // The bytes of a tensor, or nothing after noting the problem.
  Location find(const ir::Constant& constant, int64_t expected_bytes);
  const std::vector<ExternalProblem>& problems() const { return problems_; }
  // Throws ErrorCode::missing_external_data with every problem found.
  void throw_problems() const;
  std::vector<FileIdentity> opened_files() const;

 private:
  ExternalData() = default;
  std::shared_ptr<const MappedFile> open(const std::string& location, std::string& problem);

  std::filesystem::path folder_;
  std::vector<std::filesystem::path> allowed_;  // real paths
  std::map<std::string, std::pair<std::shared_ptr<const MappedFile>, std::string>> files_;
  std::vector<ExternalProblem> problems_;
};

// Reads TensorProto messages of one input. Aligned data becomes a view; the rest is copied when finish() is called.
class TensorReader {
 public:
  // `file` is what the messages lie in, when it is a mapped file; `owner` keeps any other memory alive.
  TensorReader(std::shared_ptr<const MappedFile> file, std::shared_ptr<const void> owner, ExternalData external,
               std::vector<ExternalProblem>* problems = nullptr);

  // What `given` has for the tensor's name takes the place of its content, which is not looked at.
  std::shared_ptr<ir::Constant> read(WireReader message, const GivenTensors* given = nullptr);
  ir::SparseConstantPtr read_sparse(WireReader message);
  // Copies what must be copied, on all threads; throws if external data is missing, unless `problems` takes it.
  void finish();
  std::vector<FileIdentity> external_files() const { return external_.opened_files(); }

 private:
  void take_bytes(const std::shared_ptr<ir::Constant>& constant, ElementType type, Shape shape,
                  std::span<const std::byte> bytes, const std::shared_ptr<const MappedFile>& file);
  void allocate_copies();

  struct Copy {
    std::shared_ptr<ir::Constant> to;  // its tensor has type and shape, and gets its memory when all are known
    std::span<const std::byte> from;
    std::shared_ptr<const MappedFile> file;
  };
  std::shared_ptr<const MappedFile> file_;
  std::shared_ptr<const void> owner_;
  ExternalData external_;
  std::vector<ExternalProblem>* problems_;
  std::vector<Copy> copies_;
};

}  // namespace tenon::onnx

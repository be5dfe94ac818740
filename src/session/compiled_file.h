// The file that `tenon compile` writes: a graph after all passes, its constants, and what kernels made of constants.
//
//   header      one page: magic, format, where graph and description lie, their checksums, its own
//   contents    tensors and packed weights, each at a cache line: used where they are mapped, read by no one before
//   graph       an ONNX model in the newest opsets with Tenon's own operators; its larger tensors are "external" in
//               the contents, those that only exist packed have a type and a shape alone
//   description the key, the model's report, and where each packed buffer lies
#pragma once

#include <filesystem>
#include <memory>
#include <vector>

#include "session/compiled_key.h"
#include "session/model_report.h"
#include "session/packed_archive.h"

namespace tenon {

// A part of the contents.
struct StoredPiece {
  uint64_t offset = 0, bytes = 0, hash = 0;
};

struct StoredEntry {
  std::string key;
  std::vector<StoredPiece> pieces;
};

// The description.
struct CompiledDescription {
  CompiledKey key;
  ModelReport report;
  uint64_t unstored_bytes = 0;  // of the largest tensor that only exists packed
  std::vector<StoredPiece> tensors;
  std::vector<StoredEntry> packed;
};

class CompiledFile {
 public:
  // Whether a file starts as one. Throws ErrorCode::missing_file.
  static bool is_one(const std::filesystem::path& path);
  // Maps the file. Header, graph and description must be what was written, else: ErrorCode::damaged_file, or stale_file
  // for a format of another version.
  static CompiledFile open(const std::filesystem::path& path);

  CompiledDescription description;

  const FileIdentity& identity() const { return file_->identity(); }
  // With the origins that its nodes had. Tensors view into the file.
  std::unique_ptr<ir::Model> read_model();
  StoredPacking packing() const;
  // Whether the memory is that of a tensor which was not stored.
  bool is_unstored(const Tensor& tensor) const;
  // Reads all contents and compares their checksums. Throws ErrorCode::damaged_file.
  void check_contents() const;
  uint64_t graph_bytes() const { return graph_.size(); }

 private:
  std::span<const std::byte> part(const StoredPiece& piece) const;

  std::shared_ptr<const MappedFile> file_, unstored_;
  std::span<const std::byte> graph_;
};

// Writes one. Every packed constant must have been recorded while `model` was compiled, with names that are unique.
void write_compiled_file(const std::filesystem::path& path, CompiledKey key, const ModelReport& report,
                         const ir::Model& model, const RecordedPacking& packing);

}  // namespace tenon

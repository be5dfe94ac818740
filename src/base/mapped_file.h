#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>

namespace tenon {

// Tells whether a file is the one that it was.
struct FileIdentity {
  std::filesystem::path path;  // absolute
  uint64_t device = 0, inode = 0, bytes = 0;
  int64_t modified_ns = 0;

  static std::optional<FileIdentity> of(const std::filesystem::path& path);
  bool operator==(const FileIdentity&) const = default;
};

// A file mapped read-only. Pages are read when touched and shared with other processes. The file must be replaced by
// renaming, never rewritten in place, while it is mapped.
class MappedFile {
 public:
  // Throws ErrorCode::missing_file with the system's reason.
  static std::shared_ptr<const MappedFile> open(const std::filesystem::path& path);
  // As of a file of so many zeros, which takes no memory until it is read. Throws ErrorCode::out_of_memory.
  static std::shared_ptr<const MappedFile> zeros(size_t bytes);
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  std::span<const std::byte> bytes() const { return {data_, size_}; }
  // When it was opened.
  const FileIdentity& identity() const { return identity_; }
  // Lets the system drop the pages that lie wholly inside `part` from this process's memory.
  void release(std::span<const std::byte> part) const;

 private:
  MappedFile(const std::byte* data, size_t size, FileIdentity identity)
      : data_(data), size_(size), identity_(std::move(identity)) {}
  const std::byte* data_;
  size_t size_;
  FileIdentity identity_;
};

}  // namespace tenon

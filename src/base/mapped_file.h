#pragma once

#include <cstddef>
#include <filesystem>
#include <memory>
#include <span>

namespace tenon {

// A file mapped read-only. Pages are read when touched and shared with other processes. The file must be replaced by
// renaming, never rewritten in place, while it is mapped.
class MappedFile {
 public:
  // Throws ErrorCode::missing_file with the system's reason.
  static std::shared_ptr<const MappedFile> open(const std::filesystem::path& path);
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  std::span<const std::byte> bytes() const { return {data_, size_}; }
  // Lets the system drop the pages that lie wholly inside `part` from this process's memory.
  void release(std::span<const std::byte> part) const;

 private:
  MappedFile(const std::byte* data, size_t size) : data_(data), size_(size) {}
  const std::byte* data_;
  size_t size_;
};

}  // namespace tenon

#include "base/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/fail.h"
#include "base/memory.h"

namespace tenon {
namespace {

FileIdentity identity_of(const std::filesystem::path& path, const struct stat& status) {
  std::error_code error;
  return {std::filesystem::absolute(path, error), status.st_dev, status.st_ino, static_cast<uint64_t>(status.st_size),
          int64_t{status.st_mtim.tv_sec} * 1'000'000'000 + status.st_mtim.tv_nsec};
}

}  // namespace

std::optional<FileIdentity> FileIdentity::of(const std::filesystem::path& path) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0) return std::nullopt;
  return identity_of(path, status);
}

std::shared_ptr<const MappedFile> MappedFile::open(const std::filesystem::path& path) {
  int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  struct Closer {
    int fd;
    ~Closer() {
      if (fd >= 0) ::close(fd);
    }
  } closer{descriptor};
  if (descriptor < 0) fail(ErrorCode::missing_file, "cannot open '{}': {}", path.string(), std::strerror(errno));
  struct stat status {};
  if (::fstat(descriptor, &status) != 0) {
    fail(ErrorCode::missing_file, "cannot read '{}': {}", path.string(), std::strerror(errno));
  }
  if (S_ISDIR(status.st_mode)) {
    throw Error(ErrorCode::missing_file, fmt::format("'{}' is a folder", path.string()), "name the .onnx file in it");
  }
  if (!S_ISREG(status.st_mode)) fail(ErrorCode::missing_file, "'{}' is not a regular file", path.string());
  auto size = static_cast<size_t>(status.st_size);
  void* data = nullptr;
  if (size > 0) {
    data = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, descriptor, 0);
    if (data == MAP_FAILED) fail(ErrorCode::missing_file, "cannot map '{}': {}", path.string(), std::strerror(errno));
  }
  return std::shared_ptr<const MappedFile>(
      new MappedFile(static_cast<const std::byte*>(data), size, identity_of(path, status)));
}

std::shared_ptr<const MappedFile> MappedFile::zeros(size_t bytes) {
  void* data = nullptr;
  if (bytes > 0) {
    data = ::mmap(nullptr, bytes, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (data == MAP_FAILED) fail(ErrorCode::out_of_memory, "cannot map {} bytes: {}", bytes, std::strerror(errno));
  }
  return std::shared_ptr<const MappedFile>(new MappedFile(static_cast<const std::byte*>(data), bytes, {}));
}

MappedFile::~MappedFile() {
  if (data_) ::munmap(const_cast<std::byte*>(data_), size_);
}

void MappedFile::release(std::span<const std::byte> part) const { release_pages(part.data(), part.size()); }

}  // namespace tenon

#include "base/new_file.h"

#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/fail.h"

namespace tenon {

NewFile::NewFile(std::filesystem::path path)
    : path_(std::move(path)), temporary_(path_.string() + fmt::format(".tmp{}", ::getpid())) {
  stream_.open(temporary_, std::ios::binary | std::ios::trunc);
  if (!stream_) fail(ErrorCode::write_failed, "cannot write '{}': {}", path_.string(), std::strerror(errno));
}

NewFile::~NewFile() {
  std::error_code ignored;
  if (!committed_) std::filesystem::remove(temporary_, ignored);
}

void NewFile::fill_to(int64_t position) {
  constexpr int64_t most = 1 << 16;
  for (int64_t at = this->position(); stream_ && at < position; at += most)
    write(std::string(static_cast<size_t>(std::min(most, position - at)), '\0'));
}

void NewFile::commit() {
  stream_.close();
  if (!stream_) fail(ErrorCode::write_failed, "cannot write '{}': {}", path_.string(), std::strerror(errno));
  std::error_code error;
  std::filesystem::rename(temporary_, path_, error);
  if (error) fail(ErrorCode::write_failed, "cannot write '{}': {}", path_.string(), error.message());
  committed_ = true;
}

}  // namespace tenon

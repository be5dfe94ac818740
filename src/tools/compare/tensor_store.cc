#include "tools/compare/tensor_store.h"

#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "base/fail.h"

namespace tenon::tools {
namespace {

[[noreturn]] void fail_to(const char* what) {
  throw Error(ErrorCode::write_failed, fmt::format("a temporary file cannot be {}: {}", what, std::strerror(errno)),
              "TMPDIR says where it is; intermediate values of large models take some room");
}

}  // namespace

TensorStore::TensorStore() {
  std::string path = (std::filesystem::temp_directory_path() / "tenon-XXXXXX").string();
  file_ = mkstemp(path.data());
  if (file_ < 0) fail_to("made");
  unlink(path.c_str());  // it goes when it is closed
}

TensorStore::~TensorStore() { close(file_); }

size_t TensorStore::add(const Tensor& tensor) {
  const auto* bytes = static_cast<const char*>(tensor.raw());
  for (int64_t done = 0; done < tensor.bytes();) {
    const ssize_t count = pwrite(file_, bytes + done, static_cast<size_t>(tensor.bytes() - done), end_ + done);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) fail_to("written");
    done += count;
  }
  places_.push_back({tensor.type(), tensor.shape(), end_});
  end_ += tensor.bytes();
  return places_.size() - 1;
}

Tensor TensorStore::read(size_t number) const {
  const Place& place = places_.at(number);
  Tensor tensor(place.type, place.shape);
  auto* bytes = static_cast<char*>(tensor.mutable_raw());
  for (int64_t done = 0; done < tensor.bytes();) {
    const ssize_t count = pread(file_, bytes + done, static_cast<size_t>(tensor.bytes() - done), place.offset + done);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) fail_to("read");
    done += count;
  }
  return tensor;
}

}  // namespace tenon::tools

#pragma once

#include <filesystem>
#include <fstream>
#include <string_view>

namespace tenon {

// A file that is written under another name beside `path` and renamed when all went well, so that no half-written one
// is ever seen. Throws ErrorCode::write_failed.
class NewFile {
 public:
  explicit NewFile(std::filesystem::path path);
  ~NewFile();
  NewFile(const NewFile&) = delete;
  NewFile& operator=(const NewFile&) = delete;

  void write(std::string_view bytes) { stream_.write(bytes.data(), static_cast<std::streamsize>(bytes.size())); }
  // Writes zeros up to this position, from where the file ends.
  void fill_to(int64_t position);
  // The next bytes go here, over what was written.
  void go_to(int64_t position) { stream_.seekp(position); }
  int64_t position() { return stream_.tellp(); }
  void commit();

 private:
  std::filesystem::path path_, temporary_;
  std::ofstream stream_;
  bool committed_ = false;
};

}  // namespace tenon
